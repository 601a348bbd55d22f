"""The settings of adjunct stores, as the forms have them that define and change one."""

from collections.abc import Sequence

from weir.model.adjunct_configuration import (
    LAYOUTS,
    MISSING,
    NULL_KEY,
    ON_ERROR,
    ON_GAP,
)
from weir.model.amounts import AGE_PATTERN, NONE
from weir.model.names import ADJUNCT_STORE_PATTERN
from weir.model.stream_configuration import LONGEST_EXPRESSION
from weir.operations.entries import Keywords
from weir.operations.form import AGES, LONGEST_COLUMNS, LONGEST_CUT, argument
from weir.operations.group_settings import time_out
from weir.operations.setting import Setting

_TEXT: Keywords = {"maxLength": LONGEST_EXPRESSION}


def store_argument(description: str = "The store, as scope/name.", *, new: bool = False) -> str:
    """Return a field for the name of an adjunct store: of one that exists, unless `new`."""
    names = "" if new else "adjunct_store"
    return argument("Adjunct store", description, pattern=ADJUNCT_STORE_PATTERN, names=names)


def _one_of(
    section: str, title: str, description: str, choices: Sequence[str], default: str
) -> Setting:
    return Setting(section, title, description, default, schema={"enum": list(choices)})


# The settings of `AdjunctDefinition` and `AdjunctConfiguration`, for both forms.
SETTINGS: dict[str, Setting] = {
    "key": Setting(
        "",
        "Key",
        "A column of the events, a transform such as upper(tail), or module:function of a "
        "configured package over Arrow batches.",
        if_empty="the routing key of the stream", schema=_TEXT,
    ),
    "value": Setting(
        "",
        "Value",
        "Columns and transforms with names, such as city, lower(name) AS name, or module:function "
        "of a configured package over Arrow batches. One that is alone and has no name is the "
        "column value, and its null deletes the key.",
        if_empty="all columns of the event", schema=_TEXT,
    ),
    "delete_when": Setting(
        "Deletions and functions",
        "Delete when",
        "A condition; an event for which it is true deletes its key, such as op = 'delete'.",
        if_empty="no event does", schema=_TEXT,
    ),
    "key_type": Setting(
        "Deletions and functions",
        "Type of the key", "What a function returns as key, as SQL, such as STRING.",
        if_empty="the key is no function", schema=_TEXT,
    ),
    "value_columns": Setting(
        "Deletions and functions",
        "Columns of the value",
        "What a function returns as value, as SQL, such as model STRING, seats INT.",
        if_empty="the value is no function", schema={"maxLength": LONGEST_COLUMNS},
    ),
    "layout": _one_of(
        "Joins",
        "Layout",
        "broadcast: each task of a consumer gets the whole table; partitioned: by key; auto: by "
        "the size of the version.",
        LAYOUTS, "auto",
    ),
    "bootstrap": Setting(
        "Joins",
        "Complete to",
        "What a version must be complete to before a batch is read with it: batch (its newest "
        "event), tail, time 2013-06-01T00:00:00Z, a cut such as 0.0=12, 1.0=7; or none (the "
        "newest version).",
        "batch", schema={"maxLength": LONGEST_CUT},
    ),
    "missing": _one_of(
        "Joins",
        "When there is no such version",
        "wait: build it, or wait for the builder; empty: join an empty table; fail: stop with an "
        "error.",
        MISSING, "wait",
    ),
    "patience": Setting(
        "Joins",
        "Patience", "Seconds that a consumer waits for another builder.",
        3600, schema={"minimum": 1, "maximum": 31_536_000},
    ),
    "null_key": _one_of(
        "What is wrong or missing",
        "Events without a key",
        "skip: leave them out, and count them; fail: publish no version.",
        NULL_KEY, "skip",
    ),
    "on_error": _one_of(
        "What is wrong or missing",
        "Events that fail",
        "fail: publish no version; skip: leave them out, and count them; quarantine: put them into "
        "<stream>.rejected, too.",
        ON_ERROR, "fail",
    ),
    "on_gap": _one_of(
        "What is wrong or missing",
        "When events were truncated before they were read",
        "fail: publish no version; rebuild: begin anew at the head, without the keys that only "
        "lost events had.",
        ON_GAP, "fail",
    ),
    "keep_versions": Setting(
        "Retention",
        "Keep versions",
        "For how long a version is kept after the next one was published, such as 1 d.",
        "1 d", schema={"pattern": AGE_PATTERN},
    ),
    "history": Setting(
        "Retention",
        "History", "For how long changes are kept for as-of joins, such as 30 d.",
        "", "no changes are kept, so as-of joins are impossible", NONE, {"pattern": AGE_PATTERN},
        AGES,
    ),
    "time_out": time_out(
        "How long retention waits for the store while it publishes no version although there are "
        "new events, such as 7 d."
    ),
}  # fmt: skip
