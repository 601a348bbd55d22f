"""The settings of streams, as the forms have them that create and change one."""

from collections.abc import Sequence

from weir.model.amounts import AGE_PATTERN, NONE, SIZE_PATTERN, say_age
from weir.model.new_columns import AUTOMATIC, ON_NEW_COLUMN
from weir.model.retention_policy import CONSUMED_MIN_AGE, RETENTION
from weir.model.scaling_policy import DEFAULT_COOLDOWN, MOST_SEGMENTS, SCALING
from weir.model.stream_configuration import (
    DEFAULT_BACK,
    LONGEST_EXPRESSION,
    ON_BAD_ROWS,
    ON_MISSING_KEY,
    PUBLISH,
)
from weir.operations.entries import Keywords
from weir.operations.form import (
    AGES,
    MOST_PATTERN,
    SIZES,
    TAGS,
)
from weir.operations.setting import Setting

ROWS = "Columns, and rows that do not fit"  # a section of the forms
MOST_RATE = 10**12  # a terabyte a second, for one segment


def _age(title: str, description: str, if_empty: str, examples: Sequence[str] = ()) -> Setting:
    pattern = Keywords(pattern=AGE_PATTERN)
    return Setting("Retention", title, description, "", if_empty, NONE, pattern, examples)


def _size(title: str, description: str, if_empty: str) -> Setting:
    pattern = Keywords(pattern=SIZE_PATTERN)
    return Setting("Retention", title, description, "", if_empty, NONE, pattern, SIZES)


# The settings of `Configuration`, for both forms.
SETTINGS: dict[str, Setting] = {
    "event_time": Setting(
        "",
        "Event time",
        "A column, or a transform such as timestamp_millis(ms), that says when an event happened: "
        "a time, a date, a number of seconds since 1970, or a text such as 2013-06-01 10:00:00. "
        "If it is changed later, what is complete begins anew.",
        if_empty="no event time", removed_by=NONE, schema={"maxLength": LONGEST_EXPRESSION},
    ),
    "event_time_ahead": Setting(
        "Event times",
        "Event times ahead",
        "How much later than now an event may be, and a writer may state that everything is there, "
        "such as 1 d for a stream of forecasts; none: not at all.",
        NONE, removed_by=NONE, schema={"pattern": AGE_PATTERN},
    ),
    "event_time_back": Setting(
        "Event times",
        "Event times back",
        "How far before what the stream is complete to hours and days are announced, such as 31 d. "
        "Earlier events are appended and counted, but start no run.",
        say_age(DEFAULT_BACK), removed_by=NONE, schema={"pattern": AGE_PATTERN},
    ),
    "on_missing_key": Setting(
        ROWS,
        "Rows without a routing key",
        "fail: refuse the append; quarantine: put them into <stream>.rejected; spread: place them "
        "anywhere, in no promised order; automatic, for a new stream: what is said of rows that "
        "do not fit.",
        AUTOMATIC, schema={"enum": list(ON_MISSING_KEY)},
    ),
    "on_bad_rows": Setting(
        ROWS,
        "Rows that do not fit the schema",
        "fail: refuse the append; quarantine: put them into <stream>.rejected.",
        "fail", schema={"enum": list(ON_BAD_ROWS)},
    ),
    "on_new_column": Setting(
        ROWS,
        "New columns",
        "refuse: refuse the append; add: add the column, null in earlier events, with a warning; "
        "automatic, for a new stream: refuse if its columns are given, else add.",
        AUTOMATIC, schema={"enum": list(ON_NEW_COLUMN)},
    ),
    "refuse_erased": Setting(
        ROWS,
        "Refuse erased keys",
        "Refuse an append that has a routing key that was erased from this stream "
        "(docs/erasure.md).",
        False,
    ),
    "retention": Setting(
        "Retention",
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
        AGES,
    ),
    "retain_max_age": _age(
        "Maximum age",
        "Truncate events older than this, even if subscribers have not released them, such as "
        "30 d.",
        "no maximum",
        AGES,
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
        ["30 min", "1 h", "1 d", "none"],
    ),
    "scaling": Setting(
        "Scaling",
        "Scaling",
        "fixed: only by hand; event_rate, byte_rate: by load, with a target rate.",
        "fixed", schema={"enum": list(SCALING)},
    ),
    "target_rate": Setting(
        "Scaling",
        "Target rate",
        "Events or bytes per second and segment. Weir splits a segment that gets more for a while, "
        "and merges neighbours that get less than half.",
        0, "none", schema={"minimum": 0, "maximum": MOST_RATE},
    ),
    "scale_factor": Setting(
        "Scaling",
        "Scale factor", "The most segments into which one is split at once.",
        0, "2, unless the scaling is fixed", schema={"minimum": 0, "maximum": MOST_SEGMENTS},
    ),
    "min_segments": Setting(
        "Scaling",
        "Minimum number of segments", "Refuse a scale that would leave fewer.", 1,
        schema={"minimum": 1, "maximum": MOST_SEGMENTS},
    ),
    "max_segments": Setting(
        "Scaling",
        "Maximum number of segments", "Refuse a scale that would leave more, such as 16.",
        if_empty="no maximum", removed_by=NONE, schema={"pattern": MOST_PATTERN},
    ),
    "scale_cooldown": Setting(
        "Scaling",
        "Cool-down", "How long a new segment is left as it is, such as 30 min; none: not at all.",
        say_age(DEFAULT_COOLDOWN), removed_by=NONE, schema={"pattern": AGE_PATTERN},
    ),
    "publish": Setting(
        "Other engines",
        "Publish",
        "iceberg: the hourly upkeep keeps an Iceberg table of the stream, of the same files, which "
        "other engines read (docs/engines.md); none: no such table.",
        "none", schema={"enum": list(PUBLISH)},
    ),
    "owner": Setting(
        "Tags",
        "Owner",
        "The role of the database whose members see and change it, such as team_shop (the section "
        "Teams of docs/operations.md).",
        if_empty="nobody, so that everybody does", removed_by=NONE, schema={"maxLength": 63},
    ),
    "tags": Setting("Tags", "Tags", "Words to find the stream by.", [], schema=TAGS),
}  # fmt: skip
