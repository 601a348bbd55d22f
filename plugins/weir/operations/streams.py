"""The arguments of the jobs that create, change and end streams."""

import re
from dataclasses import dataclass
from typing import Any

from weir.errors import InvalidInput
from weir.model.amounts import AGE_PATTERN, NONE, SIZE_PATTERN, parse_age, parse_size
from weir.model.names import READABLE_STREAM_PATTERN
from weir.model.scaling_policy import DEFAULT_COOLDOWN, MOST_SEGMENTS, SCALING, ScalingPolicy
from weir.model.stream_configuration import ON_BAD_ROWS, ON_MISSING_KEY
from weir.operations.form import (
    LONGEST_COLUMNS,
    MOST_PATTERN,
    SEGMENT_PATTERN,
    TAG_PATTERN,
    TAGS,
    argument,
    stream_argument,
)

MOST_RATE = 10**12  # a terabyte a second, for one segment
# The title and description of each setting of retention, in the forms of a stream.
_RETENTION = {
    "retain_min_age": (
        "Minimum age",
        "Keep events younger than this, even if all subscribers have released them, such as 7 d "
        "(s, min, h, d). Without subscribers, retention truncates older events.",
    ),
    "retain_max_age": (
        "Maximum age",
        "Truncate events older than this, even if subscribers have not released them, such as "
        "30 d.",
    ),
    "retain_min_bytes": (
        "Minimum size",
        "Keep this much of the newest events, even if all subscribers have released them, such as "
        "500 MB (B, kB, MB, GB, TB). Without subscribers, retention truncates the rest.",
    ),
    "retain_max_bytes": (
        "Maximum size",
        "Truncate the oldest events beyond this size, even if subscribers have not released them, "
        "such as 2 GB.",
    ),
    "cuts_every": (
        "Cuts every",
        "The shortest time between two recorded cuts; limits of age and size truncate only at "
        "recorded cuts. Empty: every run of weir_stream_cuts.",
    ),
    "retention_every": (
        "Retention every",
        "The shortest time between two decisions. Empty: every run of weir_retention.",
    ),
}
_WHEN_SCALED = "fixed: only by hand; event_rate, byte_rate: by load, with the settings below."
# The title and description of each setting of scaling by load.
_SCALING = {
    "target_rate": (
        "Target rate",
        "Events or bytes per second and segment. Weir splits a segment that gets more for a while, "
        "and merges neighbours that get less than half. 0: unchanged; in a new stream: none.",
    ),
    "scale_factor": (
        "Scale factor",
        "The most segments into which one is split at once. 0: unchanged; in a new stream: 2.",
    ),
    "max_segments": (
        "Maximum number of segments",
        "Refuse a scale that would leave more, such as 16; none: no maximum.",
    ),
    "scale_cooldown": (
        "Cool-down",
        "How long a new segment is left as it is, such as 30 min (if never set: 10 min).",
    ),
}


def _scaling(setting: str) -> Any:
    """Return a field of scaling by load; 0 or an empty text: not filled in."""
    title, description = _SCALING[setting]
    if setting == "max_segments":
        return argument(title, description, "", pattern=MOST_PATTERN)
    if setting == "scale_cooldown":
        return argument(title, description, "", pattern=AGE_PATTERN)
    most = MOST_RATE if setting == "target_rate" else MOST_SEGMENTS
    return argument(title, description, 0, minimum=0, maximum=most)


def _scaling_of(form: Any) -> dict[str, int | None]:
    """Return the settings of scaling by load that were filled in."""
    given: dict[str, int | None] = {
        name: getattr(form, name) for name in ("target_rate", "scale_factor") if getattr(form, name)
    }
    if form.max_segments:
        given["max_segments"] = None if form.max_segments == NONE else int(form.max_segments)
    if form.scale_cooldown:
        given["scale_cooldown"] = parse_age(form.scale_cooldown) or 0
    return given


def _retention(setting: str) -> Any:
    pattern = SIZE_PATTERN if setting.endswith("bytes") else AGE_PATTERN
    return argument(*_RETENTION[setting], "", pattern=pattern)


def _retention_of(form: Any) -> dict[str, int | None]:
    """Return the settings of retention that were filled in; None for `none`."""
    given = {name: getattr(form, name) for name in _RETENTION}
    return {
        name: parse_size(text) if name.endswith("bytes") else parse_age(text)
        for name, text in given.items()
        if text
    }


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
        maxLength=1_000,
    )
    event_time: str = argument(
        "Event time",
        "A column, or a SQL expression over columns, that says when an event happened: a time, a "
        "date, a number of seconds since 1970, or a text such as 2013-06-01 10:00:00. Empty: none.",
        "", maxLength=1_000,
    )  # fmt: skip
    segments: int = argument(
        "Segments",
        "The number of equal ranges of the key space to begin with. Scale the stream to change it.",
        1, minimum=1, maximum=10_000,
    )  # fmt: skip
    on_missing_key: str = argument(
        "Rows without a routing key",
        "fail: refuse the append; quarantine: put them into <stream>.rejected; spread: place them "
        "anywhere, in no promised order.",
        "fail", enum=list(ON_MISSING_KEY),
    )  # fmt: skip
    on_bad_rows: str = argument(
        "Rows that do not fit the schema",
        "fail: refuse the append; quarantine: put them into <stream>.rejected.",
        "fail", enum=list(ON_BAD_ROWS),
    )  # fmt: skip
    retain_by_consumption: bool = argument(
        "Truncate what is consumed",
        "Truncate events that all subscribers have released. Without a subscriber and without a "
        "limit, nothing is truncated.",
        True,
    )
    retain_min_age: str = _retention("retain_min_age")
    retain_max_age: str = _retention("retain_max_age")
    retain_min_bytes: str = _retention("retain_min_bytes")
    retain_max_bytes: str = _retention("retain_max_bytes")
    cuts_every: str = _retention("cuts_every")
    retention_every: str = _retention("retention_every")
    scaling: str = argument(
        "Scaling", _WHEN_SCALED,
        "fixed", enum=list(SCALING),
    )  # fmt: skip
    target_rate: int = _scaling("target_rate")
    scale_factor: int = _scaling("scale_factor")
    min_segments: int = argument(
        "Minimum number of segments", "Refuse a scale that would leave fewer.", 1, minimum=1,
        maximum=10_000,
    )  # fmt: skip
    max_segments: str = _scaling("max_segments")
    scale_cooldown: str = _scaling("scale_cooldown")
    tags: list[str] = argument("Tags", "Words to find the stream by.", [], **TAGS)
    schema: str = argument(
        "Columns",
        "The columns as SQL, such as: id BIGINT, name STRING. Empty: those of the first append.",
        "", maxLength=LONGEST_COLUMNS,
    )  # fmt: skip

    @property
    def retention(self) -> dict[str, int | None]:
        """The settings of retention that were filled in, by their names in `Configuration`."""
        return _retention_of(self)

    @property
    def scaling_settings(self) -> dict[str, Any]:
        """The settings of scaling that were filled in, by their names in `Configuration`. Without a
        scale factor, a hot segment is split into two."""
        factor = {} if self.scaling == "fixed" else {"scale_factor": 2}
        given = factor | _scaling_of(self)
        return {"scaling": self.scaling, "min_segments": self.min_segments, **given}

    @property
    def configuration(self) -> dict[str, Any]:
        """The settings of `Configuration`."""
        return {
            "routing_key": self.routing_key,
            "on_missing_key": self.on_missing_key,
            "on_bad_rows": self.on_bad_rows,
            "retain_by_consumption": self.retain_by_consumption,
            "event_time": self.event_time.strip() or None,
            "tags": tuple(self.tags),
            **self.scaling_settings,
            **self.retention,
        }


@dataclass(frozen=True)
class ScaleStream:
    """Seal active segments and create new ones over the same key ranges."""

    stream: str = stream_argument()
    segments: list[str] = argument(
        "Segments to replace",
        "Active segments, as number.epoch (see the view weir.segments): one to split it, "
        "neighbours to merge or divide them. Separate blocks of neighbours are scaled together.",
        items={"type": "string", "pattern": SEGMENT_PATTERN, "maxLength": 40}, minItems=1,
        maxItems=10_000,
    )  # fmt: skip
    parts: int = argument(
        "Equal parts",
        "The number of new segments of equal range that replace a segment, or neighbours; 1 merges "
        "them.",
        2,
        minimum=1,
        maximum=10_000,
    )
    boundaries: list[float] = argument(
        "Boundaries",
        "Instead of equal parts: the keys, between 0 and 1, at which new segments begin.",
        [], items={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        maxItems=9_999, uniqueItems=True,
    )  # fmt: skip
    reason: str = argument(
        "Reason", "Why you scale; the view weir.epoch_transition shows it.", "",
        maxLength=500,
    )  # fmt: skip


@dataclass(frozen=True)
class UpdateStream:
    """Change the configuration of a stream. Fields left empty or unchanged are not changed; `none`
    removes a limit.
    """

    stream: str = stream_argument()
    scaling: str = argument(
        "Scaling", _WHEN_SCALED,
        "unchanged", enum=["unchanged", *SCALING],
    )  # fmt: skip
    segments: int = argument(
        "Segments",
        "fixed: replace all segments by this many of equal range; by rate: never fewer. 0: "
        "unchanged.",
        0, minimum=0, maximum=10_000,
    )  # fmt: skip
    target_rate: int = _scaling("target_rate")
    scale_factor: int = _scaling("scale_factor")
    max_segments: str = _scaling("max_segments")
    scale_cooldown: str = _scaling("scale_cooldown")
    retain_by_consumption: str = argument(
        "Truncate what is consumed", "Whether to truncate what all subscribers have released.",
        "unchanged", enum=["unchanged", "yes", "no"],
    )  # fmt: skip
    retain_min_age: str = _retention("retain_min_age")
    retain_max_age: str = _retention("retain_max_age")
    retain_min_bytes: str = _retention("retain_min_bytes")
    retain_max_bytes: str = _retention("retain_max_bytes")
    cuts_every: str = _retention("cuts_every")
    retention_every: str = _retention("retention_every")
    on_missing_key: str = argument(
        "Rows without a routing key", "As when a stream is created.",
        "unchanged", enum=["unchanged", *ON_MISSING_KEY],
    )  # fmt: skip
    on_bad_rows: str = argument(
        "Rows that do not fit the schema", "As when a stream is created.",
        "unchanged", enum=["unchanged", *ON_BAD_ROWS],
    )  # fmt: skip
    event_time: str = argument(
        "Event time",
        "As when a stream is created; none removes it. What is complete begins anew with it.",
        "", maxLength=1_000,
    )  # fmt: skip
    tags: list[str] = argument(
        "Tags", "Words to find the stream by; they replace its tags. A single - removes them.",
        [], **{**TAGS, "items": {"type": "string", "minLength": 1, "maxLength": 100}},
    )  # fmt: skip
    more_columns: str = argument(
        "More columns",
        "Columns to add, as SQL, such as: gate STRING. They are null in existing events.",
        "", maxLength=LONGEST_COLUMNS,
    )  # fmt: skip

    @property
    def changes(self) -> dict[str, Any]:
        """The settings to change, by their names in `Configuration`. Raises InvalidInput for a bad
        tag.
        """
        given = {
            "scaling": self.scaling,
            "min_segments": self.segments,
            "on_missing_key": self.on_missing_key,
            "on_bad_rows": self.on_bad_rows,
        }
        changes: dict[str, Any] = {
            name: value for name, value in given.items() if value not in ("unchanged", 0)
        }
        if self.retain_by_consumption != "unchanged":
            changes["retain_by_consumption"] = self.retain_by_consumption == "yes"
        if self.event_time.strip():
            changes["event_time"] = None if self.event_time.strip() == NONE else self.event_time
        if self.tags:
            changes["tags"] = () if self.tags == ["-"] else tuple(self.tags)
            for tag in changes["tags"]:
                if re.fullmatch(TAG_PATTERN, tag) is None:
                    raise InvalidInput(
                        "argument_invalid",
                        f"tags holds {tag!r}, which is not a tag: a tag has no blanks at its "
                        "ends, and - removes all tags only if it is the only entry.",
                    )
        return changes | _scaling_of(self) | _retention_of(self)


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
    max_segments: str = _scaling("max_segments")
    scale_cooldown: str = _scaling("scale_cooldown")
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
        given = _scaling_of(self)
        cooldown = given.get("scale_cooldown")
        return ScalingPolicy(
            self.scaling,
            self.target_rate,
            self.scale_factor,
            self.min_segments,
            given.get("max_segments"),
            DEFAULT_COOLDOWN if cooldown is None else cooldown,
        )

    @property
    def last_seconds(self) -> int | None:
        """How many seconds to replay; None for the whole history."""
        return parse_age(self.last)
