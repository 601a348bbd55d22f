"""The arguments of the jobs that define, change, build and delete adjunct stores."""

from dataclasses import dataclass, fields
from typing import Any

from weir.errors import InvalidInput
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.amounts import AGE_PATTERN, parse_age
from weir.model.names import ADJUNCT_STORE_PATTERN, READABLE_STREAM_PATTERN
from weir.operations.form import LONGEST_COLUMNS, LONGEST_CUT, argument, stream_argument

_TEXT: dict[str, Any] = {"maxLength": 1_000}
_UNCHANGED = " Empty: unchanged; a single - for the default."


def _store(description: str = "The store, as scope/name.") -> Any:
    return argument("Adjunct store", description, pattern=ADJUNCT_STORE_PATTERN)


def _key(more: str = "") -> Any:
    return argument(
        "Key",
        "A SQL expression over the columns of an event, or module:function of a configured package "
        "over Arrow batches. Empty: the routing key of the stream." + more,
        "", **_TEXT,
    )  # fmt: skip


def _key_type(more: str = "") -> Any:
    return argument(
        "Type of the key", "What a function returns as key, as SQL, such as STRING." + more, "",
        **_TEXT,
    )  # fmt: skip


def _value(more: str = "") -> Any:
    return argument(
        "Value",
        "A SQL expression, or module:function of a configured package over Arrow batches. The "
        "fields of a struct become columns; null deletes the key. Empty: all columns of the event."
        + more,
        "", **_TEXT,
    )  # fmt: skip


def _value_columns(more: str = "") -> Any:
    return argument(
        "Columns of the value",
        "What a function returns as value, as SQL, such as model STRING, seats INT." + more, "",
        maxLength=LONGEST_COLUMNS,
    )  # fmt: skip


def _delete_when(more: str = "") -> Any:
    return argument(
        "Delete when",
        "A SQL condition; an event for which it is true deletes its key, such as op = 'delete'."
        + more,
        "", **_TEXT,
    )  # fmt: skip


def _choice(title: str, description: str, default: str, *choices: str) -> Any:
    return argument(title, description, default, enum=list(choices))


_LAYOUT = (
    "broadcast: each task of a consumer gets the whole table; partitioned: by key; auto: by the "
    "size of the version."
)
_MISSING = (
    "wait: build it, or wait for the builder; empty: join an empty table; fail: stop with an error."
)
_NULL_KEY = "skip: leave them out, and count them; fail: publish no version."
_ON_ERROR = (
    "fail: publish no version; skip: leave them out, and count them; quarantine: put them into "
    "<stream>.rejected, too."
)
_ON_GAP = (
    "fail: publish no version; rebuild: begin anew at the head, without the keys that only lost "
    "events had."
)
_BOOTSTRAP = (
    "What a version must be complete to before a batch is read with it: bound (of the batch), "
    "tail, time 2013-06-01T00:00:00Z, a cut such as 0.0=12, 1.0=7; or none (the newest version)."
)
_KEEP = "For how long a version is kept after the next one was published, such as 1 d."
_HISTORY = (
    "For how long changes are kept for as-of joins, such as 30 d. none: no changes are kept, so "
    "as-of joins are impossible."
)
_PATIENCE = "Seconds that a consumer waits for another builder."
_TIME_OUT = (
    "How long retention waits for the store while it publishes no version although there are new "
    "events, such as 7 d. none: for ever."
)


@dataclass(frozen=True)
class DefineAdjunctStore:
    """Define an adjunct store: a keyed table that is kept from a stream."""

    adjunct_store: str = _store("The name of the new store, scope/name.")
    stream: str = stream_argument(
        "The stream of changes, as scope/stream.", READABLE_STREAM_PATTERN
    )
    key: str = _key()
    value: str = _value()
    delete_when: str = _delete_when()
    key_type: str = _key_type()
    value_columns: str = _value_columns()
    layout: str = _choice("Layout", _LAYOUT, "auto", "auto", "broadcast", "partitioned")
    bootstrap: str = argument("Complete to", _BOOTSTRAP, "bound", maxLength=LONGEST_CUT)
    missing: str = _choice(
        "When there is no such version", _MISSING, "wait", "wait", "empty", "fail"
    )
    patience: int = argument("Patience", _PATIENCE, 3600, minimum=1, maximum=31_536_000)
    null_key: str = _choice("Events without a key", _NULL_KEY, "skip", "skip", "fail")
    on_error: str = _choice("Events that fail", _ON_ERROR, "fail", "fail", "skip", "quarantine")
    on_gap: str = _choice(
        "When events were truncated before they were read", _ON_GAP, "fail", "fail", "rebuild"
    )
    keep_versions: str = argument("Keep versions", _KEEP, "1 d", pattern=AGE_PATTERN)
    history: str = argument("History", _HISTORY, "", pattern=AGE_PATTERN)
    time_out: str = argument("Time-out", _TIME_OUT, "", pattern=AGE_PATTERN)

    @property
    def definition(self) -> AdjunctDefinition:
        """How it makes keys and values."""
        return AdjunctDefinition(
            **{f.name: getattr(self, f.name) for f in fields(AdjunctDefinition)}
        )

    @property
    def configuration(self) -> AdjunctConfiguration:
        """Its settings. Raises InvalidInput."""
        keep = parse_age(self.keep_versions)
        if keep is None:
            raise InvalidInput(
                "argument_invalid",
                f"keep_versions is {self.keep_versions!r}; give an age such as 1 d, as versions "
                "are not kept for ever.",
            )
        given = {one.name: getattr(self, one.name) for one in fields(AdjunctConfiguration)}
        given |= {"keep_versions": keep, "history": parse_age(self.history)}
        return AdjunctConfiguration(**given)


@dataclass(frozen=True)
class UpdateAdjunctStore:
    """Change an adjunct store. Fields left empty or unchanged are not changed."""

    adjunct_store: str = _store()
    key: str = _key(_UNCHANGED)
    value: str = _value(_UNCHANGED)
    delete_when: str = _delete_when(_UNCHANGED)
    key_type: str = _key_type(_UNCHANGED)
    value_columns: str = _value_columns(_UNCHANGED)
    layout: str = _choice(
        "Layout", _LAYOUT, "unchanged", "unchanged", "auto", "broadcast", "partitioned"
    )
    bootstrap: str = argument(
        "Complete to", _BOOTSTRAP + " Empty: unchanged.", "", maxLength=LONGEST_CUT
    )
    missing: str = _choice(
        "When there is no such version", _MISSING, "unchanged", "unchanged", "wait", "empty",
        "fail",
    )  # fmt: skip
    patience: int = argument(
        "Patience", _PATIENCE + " 0: unchanged.", 0, minimum=0, maximum=31_536_000
    )
    null_key: str = _choice(
        "Events without a key", _NULL_KEY, "unchanged", "unchanged", "skip", "fail"
    )
    on_error: str = _choice(
        "Events that fail", _ON_ERROR, "unchanged", "unchanged", "fail", "skip", "quarantine"
    )
    on_gap: str = _choice(
        "When events were truncated before they were read", _ON_GAP, "unchanged", "unchanged",
        "fail", "rebuild",
    )  # fmt: skip
    keep_versions: str = argument(
        "Keep versions", _KEEP + " Empty: unchanged.", "", pattern=AGE_PATTERN
    )
    history: str = argument("History", _HISTORY + " Empty: unchanged.", "", pattern=AGE_PATTERN)
    time_out: str = argument("Time-out", _TIME_OUT + " Empty: unchanged.", "", pattern=AGE_PATTERN)


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
