"""The arguments of the jobs that create, change and end streams."""

from dataclasses import dataclass
from typing import Any

from weir.model.amounts import AGE_PATTERN, NONE, SIZE_PATTERN, parse_age, say_age
from weir.model.names import READABLE_STREAM_PATTERN
from weir.model.new_columns import AUTOMATIC, ON_NEW_COLUMN
from weir.model.retention_policy import CONSUMED_MIN_AGE, RETENTION
from weir.model.scaling_policy import DEFAULT_COOLDOWN, MOST_SEGMENTS, SCALING, ScalingPolicy
from weir.model.stream_configuration import (
    LONGEST_EXPRESSION,
    ON_BAD_ROWS,
    ON_MISSING_KEY,
    Configuration,
)
from weir.operations.form import (
    LONGEST_COLUMNS,
    MOST_PATTERN,
    SEGMENT_PATTERN,
    TAGS,
    argument,
    loss_argument,
    stream_argument,
)
from weir.operations.setting import Setting, settings_of

MOST_RATE = 10**12  # a terabyte a second, for one segment


def _age(title: str, description: str, if_empty: str, default: str = "") -> Setting:
    return Setting(title, description, default, if_empty, NONE, {"pattern": AGE_PATTERN})


def _size(title: str, description: str, if_empty: str) -> Setting:
    return Setting(title, description, "", if_empty, NONE, {"pattern": SIZE_PATTERN})


# The settings of `Configuration`, for both forms.
SETTINGS: dict[str, Setting] = {
    "event_time": Setting(
        "Event time",
        "A column, or a SQL expression over columns, that says when an event happened: a time, a "
        "date, a number of seconds since 1970, or a text such as 2013-06-01 10:00:00. "
        "If it is changed later, what is complete begins anew.",
        if_empty="no event time", removed_by=NONE, schema={"maxLength": LONGEST_EXPRESSION},
    ),
    "on_missing_key": Setting(
        "Rows without a routing key",
        "fail: refuse the append; quarantine: put them into <stream>.rejected; spread: place them "
        "anywhere, in no promised order.",
        "fail", schema={"enum": list(ON_MISSING_KEY)},
    ),
    "on_bad_rows": Setting(
        "Rows that do not fit the schema",
        "fail: refuse the append; quarantine: put them into <stream>.rejected.",
        "fail", schema={"enum": list(ON_BAD_ROWS)},
    ),
    "on_new_column": Setting(
        "New columns",
        "refuse: refuse the append; add: add the column, null in earlier events, with a warning; "
        "automatic, for a new stream: refuse if its columns are given, else add.",
        AUTOMATIC, schema={"enum": list(ON_NEW_COLUMN)},
    ),
    "retention": Setting(
        "Retention",
        "keep: nothing is deleted; age, size: delete what exceeds the maximum; consumed: delete "
        "what all subscribers have released, and what exceeds a maximum.",
        "keep", schema={"enum": list(RETENTION)},
    ),
    "retain_min_age": _age(
        "Minimum age",
        "Keep events younger than this, even if all subscribers have released them, such as 7 d "
        "(s, min, h, d).",
        f"no minimum; {say_age(CONSUMED_MIN_AGE)} where retention becomes consumed, if it is not "
        "none",
    ),
    "retain_max_age": _age(
        "Maximum age",
        "Truncate events older than this, even if subscribers have not released them, such as "
        "30 d.",
        "no maximum",
    ),
    "retain_min_bytes": _size(
        "Minimum size",
        "Keep this much of the newest events, even if all subscribers have released them, such as "
        "500 MB (B, kB, MB, GB, TB).",
        "no minimum",
    ),
    "retain_max_bytes": _size(
        "Maximum size",
        "Truncate the oldest events beyond this size, even if subscribers have not released them, "
        "such as 2 GB.",
        "no maximum",
    ),
    "cuts_every": _age(
        "Cuts every",
        "The shortest time between two recorded cuts; limits of age and size truncate only at "
        "recorded cuts.",
        "every run that records cuts",
    ),
    "retention_every": _age(
        "Retention every", "The shortest time between two decisions.", "every run of retention"
    ),
    "scaling": Setting(
        "Scaling",
        "fixed: only by hand; event_rate, byte_rate: by load, with a target rate.",
        "fixed", schema={"enum": list(SCALING)},
    ),
    "target_rate": Setting(
        "Target rate",
        "Events or bytes per second and segment. Weir splits a segment that gets more for a while, "
        "and merges neighbours that get less than half.",
        0, "none", schema={"minimum": 0, "maximum": MOST_RATE},
    ),
    "scale_factor": Setting(
        "Scale factor", "The most segments into which one is split at once.",
        0, "2, unless the scaling is fixed", schema={"minimum": 0, "maximum": MOST_SEGMENTS},
    ),
    "min_segments": Setting(
        "Minimum number of segments", "Refuse a scale that would leave fewer.", 1,
        schema={"minimum": 1, "maximum": MOST_SEGMENTS},
    ),
    "max_segments": Setting(
        "Maximum number of segments", "Refuse a scale that would leave more, such as 16.",
        if_empty="no maximum", removed_by=NONE, schema={"pattern": MOST_PATTERN},
    ),
    "scale_cooldown": _age(
        "Cool-down", "How long a new segment is left as it is, such as 30 min; none: not at all.",
        "", say_age(DEFAULT_COOLDOWN),
    ),
    "tags": Setting("Tags", "Words to find the stream by.", [], schema=TAGS),
}  # fmt: skip


def _created(setting: str) -> Any:
    return SETTINGS[setting].created()


def _changed(setting: str) -> Any:
    return SETTINGS[setting].changed()


@dataclass(frozen=True)
class CreateStream:
    """Create a stream."""

    stream: str = stream_argument(
        "The name of the new stream, as scope/stream: lower-case letters, digits, _ and -."
    )
    routing_key: str = argument(
        "Routing key",
        "A column such as customer, or a SQL expression over columns, whose value decides the "
        "segment. Events of one key are read in the order in which they were written.",
        maxLength=LONGEST_EXPRESSION,
    )
    event_time: str = _created("event_time")
    segments: int = argument(
        "Segments",
        "The number of equal ranges of the key space to begin with. Scale the stream to change it.",
        1, minimum=1, maximum=MOST_SEGMENTS,
    )  # fmt: skip
    on_missing_key: str = _created("on_missing_key")
    on_bad_rows: str = _created("on_bad_rows")
    on_new_column: str = _created("on_new_column")
    retention: str = _created("retention")
    retain_min_age: str = _created("retain_min_age")
    retain_max_age: str = _created("retain_max_age")
    retain_min_bytes: str = _created("retain_min_bytes")
    retain_max_bytes: str = _created("retain_max_bytes")
    cuts_every: str = _created("cuts_every")
    retention_every: str = _created("retention_every")
    scaling: str = _created("scaling")
    target_rate: int = _created("target_rate")
    scale_factor: int = _created("scale_factor")
    min_segments: int = _created("min_segments")
    max_segments: str = _created("max_segments")
    scale_cooldown: str = _created("scale_cooldown")
    tags: list[str] = _created("tags")
    schema: str = argument(
        "Columns",
        "The columns as SQL, such as: id BIGINT, name STRING. Empty: those of the first append.",
        "", maxLength=LONGEST_COLUMNS,
    )  # fmt: skip

    @property
    def configuration(self) -> Configuration:
        """Its configuration. Raises InvalidInput for a wrong setting."""
        key = Configuration(self.routing_key.strip())
        return key.changed(settings_of(self, Configuration))


@dataclass(frozen=True)
class ScaleStream:
    """Seal active segments and create new ones over the same key ranges."""

    stream: str = stream_argument()
    segments: list[str] = argument(
        "Segments to replace",
        "Active segments, as number.epoch (see the view weir.segments): one to split it, "
        "neighbours to merge or divide them. Separate blocks of neighbours are scaled together.",
        items={"type": "string", "pattern": SEGMENT_PATTERN, "maxLength": 40}, minItems=1,
        maxItems=MOST_SEGMENTS,
    )  # fmt: skip
    parts: int = argument(
        "Equal parts",
        "The number of new segments of equal range that replace a segment, or neighbours; 1 merges "
        "them.",
        2,
        minimum=1,
        maximum=MOST_SEGMENTS,
    )
    boundaries: list[float] = argument(
        "Boundaries",
        "Instead of equal parts: the keys, between 0 and 1, at which new segments begin.",
        [], items={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        maxItems=MOST_SEGMENTS - 1, uniqueItems=True,
    )  # fmt: skip
    reason: str = argument(
        "Reason", "Why you scale; the view weir.epoch_transition shows it.", "",
        maxLength=500,
    )  # fmt: skip


@dataclass(frozen=True)
class UpdateStream:
    """Change the configuration of a stream. What is not given, empty or unchanged is not changed;
    `none` removes a limit.
    """

    stream: str = stream_argument()
    scaling: str = _changed("scaling")
    segments: int = argument(
        "Segments",
        "fixed: replace all segments by this many of equal range; by rate: never fewer. 0: "
        "unchanged.",
        0, minimum=0, maximum=MOST_SEGMENTS,
    )  # fmt: skip
    target_rate: int = _changed("target_rate")
    scale_factor: int = _changed("scale_factor")
    max_segments: str = _changed("max_segments")
    scale_cooldown: str = _changed("scale_cooldown")
    retention: str = _changed("retention")
    retain_min_age: str = _changed("retain_min_age")
    retain_max_age: str = _changed("retain_max_age")
    retain_min_bytes: str = _changed("retain_min_bytes")
    retain_max_bytes: str = _changed("retain_max_bytes")
    cuts_every: str = _changed("cuts_every")
    retention_every: str = _changed("retention_every")
    on_missing_key: str = _changed("on_missing_key")
    on_bad_rows: str = _changed("on_bad_rows")
    on_new_column: str = _changed("on_new_column")
    event_time: str = _changed("event_time")
    tags: list[str] = _changed("tags")
    more_columns: str = argument(
        "More columns",
        "Columns to add, as SQL, such as: gate STRING. They are null in existing events. They are "
        "also added to a stream that refuses new columns.",
        "", maxLength=LONGEST_COLUMNS,
    )  # fmt: skip
    allow_loss: bool = loss_argument()

    @property
    def changes(self) -> dict[str, Any]:
        """The settings to change, by their names in `Configuration`. Raises InvalidInput for an
        amount that is too small."""
        fewest = {"min_segments": self.segments} if self.segments else {}
        return settings_of(self, Configuration) | fewest


@dataclass(frozen=True)
class BackTest:
    """Replay a scaling policy over the recorded history of a stream, and change nothing."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)
    target_rate: int = argument(
        "Target rate",
        "Events or bytes per second and segment, of the policy to try. 0: the stream's own policy.",
        0, minimum=0, maximum=MOST_RATE,
    )  # fmt: skip
    scaling: str = argument(
        "Scaling", "What the target rate counts.", "event_rate", enum=list(SCALING[1:])
    )
    scale_factor: int = argument(
        "Scale factor", "The most segments into which one is split at once.", 2, minimum=2,
        maximum=MOST_SEGMENTS,
    )  # fmt: skip
    last: str = argument(
        "Replay the last",
        "How much of the history to replay, such as 7 d. Empty: all of it.",
        "", pattern=AGE_PATTERN,
    )  # fmt: skip
    min_segments: int = argument(
        "Minimum number of segments", "No merge leaves fewer.", 1, minimum=1, maximum=MOST_SEGMENTS
    )
    max_segments: str = _created("max_segments")
    scale_cooldown: str = _created("scale_cooldown")
    read_files: bool = argument(
        "Read the stream's files",
        "Learn from a sample of the files where within the segments the events lie. Off: take them "
        "as evenly spread.",
        True,
    )

    @property
    def policy(self) -> ScalingPolicy | None:
        """The policy to try; None for the stream's own."""
        if not self.target_rate:
            return None
        given = settings_of(self, Configuration)
        return Configuration("").changed(given).scaling_policy

    @property
    def last_seconds(self) -> int | None:
        """How many seconds to replay; None for the whole history."""
        return parse_age(self.last)
