"""The configuration of a stream: what may be set when it is created or updated."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from weir.errors import InvalidInput, check_choice
from weir.front_ends import called
from weir.model.amounts import LONGEST
from weir.model.changed_settings import with_settings
from weir.model.names import TAG, TAG_PATTERN, shortened
from weir.model.new_columns import ADD, AUTOMATIC, ON_NEW_COLUMN, REFUSE
from weir.model.retention_policy import CONSUMED_MIN_AGE, Policy, check_every
from weir.model.scaling_policy import DEFAULT_COOLDOWN, ScalingPolicy

LONGEST_EXPRESSION = 1_000  # characters
DEFAULT_BACK = 31 * 86_400  # seconds
ON_MISSING_KEY = ("fail", "quarantine", "spread")
ON_BAD_ROWS = ("fail", "quarantine")
PUBLISH = ("none", "iceberg")
_LIMITS = ("retain_min_age", "retain_max_age", "retain_min_bytes", "retain_max_bytes")


@dataclass(frozen=True)
class Configuration:
    """The settings of a stream, as asked for.

    `routing_key`: a column with its transforms (`weir.model.transforms`); it never changes.
    `on_missing_key`: what happens to a row whose key is null. `fail` refuses the append,
    `quarantine` keeps the row in `<stream>.rejected`, `spread` appends it in no promised order.
    `automatic`, for a new stream: what `on_bad_rows` says.
    `on_bad_rows`: what happens to a row that does not fit the schema: `fail` or `quarantine`.
    `on_new_column`: what happens to rows with a column that the stream does not have: `refuse` the
    append, or `add` the column. `automatic`, for a new stream: `refuse` if its columns are given.
    `tags`: words by which people find the stream. `owner`: the role of the database whose members
    see and change it; None: everybody.

    `target_rate` to `scale_cooldown`: see `scaling_policy`; an update of `min_segments` in a stream
    with fixed scaling makes exactly that many segments (semantics 5.2). `retention` and
    `retain_...`: see `retention_policy`. `event_time`: a column with its transforms, when an event
    happened; None: the stream has no event time. `event_time_ahead`: how many seconds later than
    now a writer may state that everything is there, and an event may be. `event_time_back`: how
    many seconds before what the stream is complete to its events, hours and days count.
    `cuts_every`: the fewest seconds between two cuts of the retention set; None: every run of the
    periodic DAG.
    `publish`: as what `weir_upkeep` publishes it: `iceberg`, a table of that format, or `none`.
    `refuse_erased`: whether an append is refused that has a routing key of which an erasure has
    erased the events of this stream (semantics 20).
    """

    routing_key: str
    on_missing_key: str = AUTOMATIC
    on_bad_rows: str = "fail"
    on_new_column: str = AUTOMATIC
    retention: str = "keep"
    retain_min_age: int | None = None
    retain_max_age: int | None = None
    retain_min_bytes: int | None = None
    retain_max_bytes: int | None = None
    cuts_every: int | None = None
    publish: str = "none"
    refuse_erased: bool = False
    scaling: str = "fixed"
    min_segments: int = 1
    target_rate: int | None = None
    scale_factor: int | None = None
    max_segments: int | None = None
    scale_cooldown: int = DEFAULT_COOLDOWN
    event_time: str | None = None
    event_time_ahead: int = 0
    event_time_back: int = DEFAULT_BACK
    tags: tuple[str, ...] = ()
    owner: str | None = None

    @property
    def retention_policy(self) -> Policy:
        """The retention policy that these settings make."""
        return Policy(
            self.retention,
            self.retain_min_age,
            self.retain_max_age,
            self.retain_min_bytes,
            self.retain_max_bytes,
        )

    @property
    def scaling_policy(self) -> ScalingPolicy:
        """The scaling policy that these settings make."""
        return ScalingPolicy(
            self.scaling,
            self.target_rate,
            self.scale_factor,
            self.min_segments,
            self.max_segments,
            self.scale_cooldown,
        )

    def check(self) -> None:
        """Check all settings. Raises InvalidInput naming the setting and what it may be."""
        self.retention_policy.check()
        check_every("cuts_every", self.cuts_every)
        if self.event_time is not None and not self.event_time.strip():
            raise InvalidInput(
                "argument_invalid",
                f"{called('event_time')} is empty; name a column, or leave it out.",
            )
        for what, seconds, least in (
            ("event_time_ahead", self.event_time_ahead, 0),
            ("event_time_back", self.event_time_back, 1),
        ):
            if not least <= seconds <= LONGEST:
                raise InvalidInput(
                    "argument_invalid",
                    f"{called(what)} is {seconds} s; it must be between {least} and {LONGEST}.",
                )
        check_choice(called("on_missing_key"), self.on_missing_key, (AUTOMATIC, *ON_MISSING_KEY))
        check_choice(called("on_bad_rows"), self.on_bad_rows, ON_BAD_ROWS)
        check_choice(called("publish"), self.publish, PUBLISH)
        check_choice(called("on_new_column"), self.on_new_column, (AUTOMATIC, *ON_NEW_COLUMN))
        self.scaling_policy.check()
        for tag in self.tags:
            if re.fullmatch(TAG_PATTERN, tag) is None:
                raise InvalidInput(
                    "argument_invalid",
                    f"{called('tags')} holds {shortened(tag)}, which is not {TAG}.",
                )

    def created(self, declared: bool) -> "Configuration":
        """Return the configuration of a new stream. `declared`: its columns are given."""
        made = self
        if self.on_missing_key == AUTOMATIC:
            made = replace(made, on_missing_key=self.on_bad_rows)
        if self.on_new_column == AUTOMATIC:
            made = replace(made, on_new_column=REFUSE if declared else ADD)
        return made

    def changed(self, changes: Mapping[str, object]) -> "Configuration":
        """Return the configuration with other settings.

        A stream that becomes `consumed` gets a minimum age unless one is given, if only None
        (semantics 11.1); one that becomes `keep` loses the limits that are not given.

        Raises InvalidInput for a setting that cannot change, is unknown, or has a wrong value.
        """
        if changes.get("routing_key", self.routing_key) != self.routing_key:
            raise InvalidInput(
                "change_impossible",
                "the routing key of a stream can't change, because the order of its events "
                "depends on it; create another stream.",
            )
        decided = ("on_new_column", "on_missing_key")  # when the stream is created
        changes = {n: new for n, new in changes.items() if n not in decided or new != AUTOMATIC}
        if changes.get("scaling") == "fixed":
            changes = {"target_rate": None, "scale_factor": None, "max_segments": None, **changes}
        elif "scaling" in changes and self.scale_factor is None:
            changes = {"scale_factor": 2, **changes}
        if (chosen := changes.get("retention", self.retention)) != self.retention:
            if chosen == "keep":
                changes = {**dict.fromkeys(_LIMITS), **changes}
            elif chosen == "consumed" and self.retain_min_age is None:
                changes = {"retain_min_age": CONSUMED_MIN_AGE, **changes}
        return with_settings(self, changes, "a stream")
