"""The arguments of the jobs that define, change, build and delete adjunct stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weir.model.adjunct_configuration import (
    LAYOUTS,
    MISSING,
    NULL_KEY,
    ON_ERROR,
    ON_GAP,
    AdjunctConfiguration,
    AdjunctDefinition,
)
from weir.model.amounts import AGE_PATTERN, NONE
from weir.model.names import ADJUNCT_STORE_PATTERN, READABLE_STREAM_PATTERN
from weir.model.stream_configuration import LONGEST_EXPRESSION
from weir.operations.form import LONGEST_COLUMNS, LONGEST_CUT, argument, stream_argument
from weir.operations.reader_groups import time_out
from weir.operations.setting import Setting, settings_of

_TEXT: dict[str, Any] = {"maxLength": LONGEST_EXPRESSION}


def _store(description: str = "The store, as scope/name.") -> Any:
    return argument("Adjunct store", description, pattern=ADJUNCT_STORE_PATTERN)


def _one_of(title: str, description: str, choices: Sequence[str], default: str) -> Setting:
    return Setting(title, description, default, schema={"enum": list(choices)})


# The settings of `AdjunctDefinition` and `AdjunctConfiguration`, for both forms.
SETTINGS: dict[str, Setting] = {
    "key": Setting(
        "Key",
        "A SQL expression over the columns of an event, or module:function of a configured package "
        "over Arrow batches.",
        if_empty="the routing key of the stream", schema=_TEXT,
    ),
    "value": Setting(
        "Value",
        "A SQL expression, or module:function of a configured package over Arrow batches. The "
        "fields of a struct become columns; null deletes the key.",
        if_empty="all columns of the event", schema=_TEXT,
    ),
    "delete_when": Setting(
        "Delete when",
        "A SQL condition; an event for which it is true deletes its key, such as op = 'delete'.",
        if_empty="no event does", schema=_TEXT,
    ),
    "key_type": Setting(
        "Type of the key", "What a function returns as key, as SQL, such as STRING.",
        if_empty="the key is no function", schema=_TEXT,
    ),
    "value_columns": Setting(
        "Columns of the value",
        "What a function returns as value, as SQL, such as model STRING, seats INT.",
        if_empty="the value is no function", schema={"maxLength": LONGEST_COLUMNS},
    ),
    "layout": _one_of(
        "Layout",
        "broadcast: each task of a consumer gets the whole table; partitioned: by key; auto: by "
        "the size of the version.",
        LAYOUTS, "auto",
    ),
    "bootstrap": Setting(
        "Complete to",
        "What a version must be complete to before a batch is read with it: batch (its newest "
        "event), tail, time 2013-06-01T00:00:00Z, a cut such as 0.0=12, 1.0=7; or none (the "
        "newest version).",
        "batch", schema={"maxLength": LONGEST_CUT},
    ),
    "missing": _one_of(
        "When there is no such version",
        "wait: build it, or wait for the builder; empty: join an empty table; fail: stop with an "
        "error.",
        MISSING, "wait",
    ),
    "patience": Setting(
        "Patience", "Seconds that a consumer waits for another builder.",
        3600, schema={"minimum": 1, "maximum": 31_536_000},
    ),
    "null_key": _one_of(
        "Events without a key",
        "skip: leave them out, and count them; fail: publish no version.",
        NULL_KEY, "skip",
    ),
    "on_error": _one_of(
        "Events that fail",
        "fail: publish no version; skip: leave them out, and count them; quarantine: put them into "
        "<stream>.rejected, too.",
        ON_ERROR, "fail",
    ),
    "on_gap": _one_of(
        "When events were truncated before they were read",
        "fail: publish no version; rebuild: begin anew at the head, without the keys that only "
        "lost events had.",
        ON_GAP, "fail",
    ),
    "keep_versions": Setting(
        "Keep versions",
        "For how long a version is kept after the next one was published, such as 1 d.",
        "1 d", schema={"pattern": AGE_PATTERN},
    ),
    "history": Setting(
        "History", "For how long changes are kept for as-of joins, such as 30 d.",
        "", "no changes are kept, so as-of joins are impossible", NONE, {"pattern": AGE_PATTERN},
    ),
    "time_out": time_out(
        "How long retention waits for the store while it publishes no version although there are "
        "new events, such as 7 d."
    ),
}  # fmt: skip


@dataclass(frozen=True)
class DefineAdjunctStore:
    """Define an adjunct store: a keyed table that is kept from a stream."""

    adjunct_store: str = _store("The name of the new store, scope/name.")
    stream: str = stream_argument(
        "The stream of changes, as scope/stream.", READABLE_STREAM_PATTERN
    )
    key: str = SETTINGS["key"].created()
    value: str = SETTINGS["value"].created()
    delete_when: str = SETTINGS["delete_when"].created()
    key_type: str = SETTINGS["key_type"].created()
    value_columns: str = SETTINGS["value_columns"].created()
    layout: str = SETTINGS["layout"].created()
    bootstrap: str = SETTINGS["bootstrap"].created()
    missing: str = SETTINGS["missing"].created()
    patience: int = SETTINGS["patience"].created()
    null_key: str = SETTINGS["null_key"].created()
    on_error: str = SETTINGS["on_error"].created()
    on_gap: str = SETTINGS["on_gap"].created()
    keep_versions: str = SETTINGS["keep_versions"].created()
    history: str = SETTINGS["history"].created()
    time_out: str = SETTINGS["time_out"].created()

    @property
    def definition(self) -> AdjunctDefinition:
        """How it makes keys and values."""
        return AdjunctDefinition(**settings_of(self, AdjunctDefinition))

    @property
    def configuration(self) -> AdjunctConfiguration:
        """Its settings. Raises InvalidInput for a wrong one."""
        return AdjunctConfiguration().changed(settings_of(self, AdjunctConfiguration))


@dataclass(frozen=True)
class UpdateAdjunctStore:
    """Change an adjunct store. What is not given, empty or unchanged is not changed."""

    adjunct_store: str = _store()
    key: str = SETTINGS["key"].changed()
    value: str = SETTINGS["value"].changed()
    delete_when: str = SETTINGS["delete_when"].changed()
    key_type: str = SETTINGS["key_type"].changed()
    value_columns: str = SETTINGS["value_columns"].changed()
    layout: str = SETTINGS["layout"].changed()
    bootstrap: str = SETTINGS["bootstrap"].changed()
    missing: str = SETTINGS["missing"].changed()
    patience: int = SETTINGS["patience"].changed()
    null_key: str = SETTINGS["null_key"].changed()
    on_error: str = SETTINGS["on_error"].changed()
    on_gap: str = SETTINGS["on_gap"].changed()
    keep_versions: str = SETTINGS["keep_versions"].changed()
    history: str = SETTINGS["history"].changed()
    time_out: str = SETTINGS["time_out"].changed()

    @property
    def changes(self) -> dict[str, Any]:
        """The settings of `AdjunctConfiguration` to change, by their names."""
        return settings_of(self, AdjunctConfiguration)

    @property
    def redefined(self) -> dict[str, str]:
        """The parts of `AdjunctDefinition` to change, by their names."""
        return settings_of(self, AdjunctDefinition)


@dataclass(frozen=True)
class DeleteAdjunctStore:
    """Delete an adjunct store with its versions; its stream is kept."""

    adjunct_store: str = _store()


@dataclass(frozen=True)
class Adjunct:
    """Build versions of the adjunct stores whose streams have moved."""

    adjunct_stores: list[str] = argument(
        "Adjunct stores",
        "Build versions of these, as scope/name. Empty: of all whose stream or definition changed.",
        [], items={"type": "string", "pattern": ADJUNCT_STORE_PATTERN}, maxItems=20_000,
    )  # fmt: skip
