"""What may be asked for when an adjunct store is defined or updated."""

from collections.abc import Mapping
from dataclasses import dataclass

from weir.errors import InvalidInput, check_choice
from weir.front_ends import called, do, leave_out
from weir.model.amounts import LONGEST, say_age
from weir.model.changed_settings import with_settings

LAYOUTS = ("auto", "broadcast", "partitioned")
MISSING = ("wait", "empty", "fail")
NULL_KEY = ("skip", "fail")
ON_ERROR = ("fail", "skip", "quarantine")
ON_GAP = ("fail", "rebuild")
_ONE_OF = {
    "layout": LAYOUTS, "missing": MISSING, "null_key": NULL_KEY, "on_error": ON_ERROR,
    "on_gap": ON_GAP,
}  # fmt: skip
_BROADCAST_BYTES = 32 << 20  # of Parquet files: a larger version is not broadcast by itself
MOST_BROADCAST_BYTES = 1 << 30  # a larger one never: Spark refuses tables of 8 GiB in memory


@dataclass(frozen=True)
class AdjunctConfiguration:
    """What was asked for; each field is a column of the table `adjunct_store`.

    `layout`: how consumers join the table. `bootstrap`: what a version must be complete to before a
    batch is read with it: `batch`, `tail`, `none`, `time ...` or a stream cut. `missing`: what a
    consumer does as long as there is no such version. `patience`: how many seconds it waits for
    another builder. `null_key`, `on_error`: what happens to events without a key, and to those for
    which the definition fails. `on_gap`: what a build does if events were truncated before it read
    them. `keep_versions`: how many seconds a version is kept after the next one was published.
    `history`: for how many seconds changes are kept for as-of joins; None: none are.
    """

    layout: str = "auto"
    bootstrap: str = "batch"
    missing: str = "wait"
    patience: int = 3600
    null_key: str = "skip"
    on_error: str = "fail"
    on_gap: str = "fail"
    keep_versions: int = 86400
    history: int | None = None

    def check(self) -> None:
        """Check the settings. Raises InvalidInput naming the setting and what it may be."""
        for name, allowed in _ONE_OF.items():
            check_choice(called(name), getattr(self, name), allowed)
        if self.starting_point is None and self.bootstrap.strip() not in ("none", "batch", "tail"):
            raise InvalidInput(
                "argument_invalid",
                f"{called('bootstrap')} is {self.bootstrap!r}; it must be none, batch, tail, time "
                "2013-06-01T00:00:00Z, or a stream cut such as 0.0=12, 1.0=7.",
            )
        for name in ("patience", "keep_versions", "history"):
            seconds = getattr(self, name)
            if seconds is not None and not 1 <= seconds <= LONGEST:
                raise InvalidInput(
                    "argument_invalid",
                    f"{called(name)} is {seconds or 'none or 0'} s; it must be more than 0 and at "
                    f"most {say_age(LONGEST)}.",
                )

    @property
    def starting_point(self) -> str | None:
        """The time or the stream cut that `bootstrap` names, if it is one."""
        written = self.bootstrap.strip()
        return written if written.startswith("time ") or "=" in written else None

    def changed(self, changes: Mapping[str, object]) -> "AdjunctConfiguration":
        """Return the configuration with other settings. Raises InvalidInput for an unknown or a
        wrong one."""
        return with_settings(self, changes, "an adjunct store")

    def layout_of(self, store: str, size: int) -> str:
        """Return how a version of so many bytes is joined: `broadcast` or `partitioned`. Raises
        InvalidInput if it must be broadcast and is too large for that."""
        if self.layout == "broadcast" and size > MOST_BROADCAST_BYTES:
            raise InvalidInput(
                "join_invalid",
                f"the table of adjunct store {store} has {size:,} bytes, but at most "
                f"{MOST_BROADCAST_BYTES:,} are broadcast; "
                f"{do('update_adjunct_store', adjunct_store=store, layout='auto')}.",
            )
        if self.layout == "auto":
            return "broadcast" if size <= _BROADCAST_BYTES else "partitioned"
        return self.layout


@dataclass(frozen=True)
class AdjunctDefinition:
    """How a store makes keys and values of events; each field is a column of `adjunct_definition`.

    `key`: a column or a transform of some (`weir.model.transforms`); `value`: some of these with
    names; or each `module:function`; empty for the stream's routing key, and for all columns of the
    event. `key_type`, `value_columns`: what the functions return, as SQL. `delete_when`: a
    condition; an event for which it is true deletes its key.
    """

    key: str = ""
    key_type: str = ""
    value: str = ""
    value_columns: str = ""
    delete_when: str = ""

    @property
    def functions(self) -> list[str]:
        """The names of its functions, `module:function`."""
        named = ((self.key, self.key_type), (self.value, self.value_columns))
        return [name for name, declared in named if declared]

    def check(self) -> None:
        """Check that a type is declared for each function, and for nothing else. Raises
        InvalidInput."""
        for what, given, type_name, declared in (
            ("key", self.key, "key_type", self.key_type),
            ("value", self.value, "value_columns", self.value_columns),
        ):
            is_function = is_function_name(given)
            if is_function and not declared.strip():
                raise InvalidInput(
                    "function_invalid",
                    f"the {what} of the store is the function {given}, but {called(type_name)} "
                    "does not say what it returns; write it as SQL, such as "
                    f"{'STRING' if what == 'key' else 'model STRING, seats INT'}.",
                )
            if declared.strip() and not is_function:
                raise InvalidInput(
                    "function_invalid",
                    f"{called(type_name)} is {declared!r}, but the {what} is not a function; "
                    f"{leave_out(type_name)}, as columns and transforms have types of their own.",
                )


def is_function_name(text: str) -> bool:
    """Return whether a text is written `module:function`, and so is no transform."""
    module, colon, function = text.strip().partition(":")
    return bool(colon) and all(part.isidentifier() for part in [*module.split("."), function])
