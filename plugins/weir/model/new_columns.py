"""What an append may change in the columns of its stream (semantics 12.4): it adds new ones with a
word, or is refused."""

import difflib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from weir.errors import Conflict, InvalidInput
from weir.front_ends import do
from weir.model.names import REJECTED
from weir.model.schema import Field, fitted, is_open, merge, show

log = logging.getLogger("weir.columns")
REFUSE, ADD = "refuse", "add"
ON_NEW_COLUMN = (REFUSE, ADD)
AUTOMATIC = "automatic"  # of a stream to be created: refuse if its columns are given, else add
_MOST_LINES = 20


@dataclass(frozen=True)
class Fitting:
    """The columns of a stream after an append, which ones the append adds, and which it lacks.

    `new`: a line for each column that the stream did not have.
    """

    fields: list[Field]
    added: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    new: tuple[str, ...] = ()

    def announce(self, say: Callable[[str], None] = log.info) -> None:
        """Log a warning for each new column; say which columns of the stream the rows lack."""
        for line in self.new:
            log.warning("%s", line)
        if len(self.missing) == 1:
            say(f"the rows do not have column {self.missing[0]!r} of the stream, which is null")
        elif self.missing:
            more = f" and {len(self.missing) - 5:,} more" if len(self.missing) > 5 else ""
            say(
                f"the rows do not have the columns {', '.join(map(repr, self.missing[:5]))}{more} "
                "of the stream, which are null"
            )


def fitting(
    stream: str, current: list[Field] | None, given: list[Field], on_new_column: str
) -> Fitting:
    """Return how rows with the columns `given` fit a stream with the columns `current`; None
    before its first append.

    Raises InvalidInput like `weir.model.schema.fitted`, and for a new column if the stream refuses
    them, also for one without a value.
    """
    fields = fitted(stream, current, given)
    if not current or stream.endswith(REJECTED):  # in these Weir names the columns
        return Fitting(fields)
    _check_new(stream, current, given, on_new_column)
    known, names = {field["name"] for field in current}, {field["name"] for field in given}
    missing = tuple(field["name"] for field in current if field["name"] not in names)
    new = [field for field in given if field["name"] not in known]
    lines = [_line(stream, field, missing) for field in new[:_MOST_LINES]]
    if len(new) > _MOST_LINES:
        lines.append(f"{len(new) - _MOST_LINES:,} more columns are new in stream {stream}")
    there = {field["name"] for field in fields}
    added = tuple(field["name"] for field in new if field["name"] in there)
    return Fitting(fields, added, missing, tuple(lines))


def combine(
    stream: str, current: list[Field] | None, planned: list[Field], on_new_column: str = ADD
) -> list[Field]:
    """Return the columns of both schemas, for two appends that added columns at the same time.

    Raises Conflict if they contradict each other, or if the stream refuses what the later one adds.
    """
    try:
        both = merge(stream, current, planned)
        if current:
            _check_new(stream, current, planned, on_new_column)
    except InvalidInput as error:
        raise Conflict(
            "schema_changed", f"another append changed the schema in the meantime: {error.sentence}"
        ) from None
    return both


def _check_new(stream: str, current: list[Field], given: list[Field], on_new_column: str) -> None:
    known, names = [field["name"] for field in current], [field["name"] for field in given]
    new = sorted(set(names) - set(known), key=names.index)
    if on_new_column != REFUSE or not new:
        return
    more = f" and {len(new) - 1:,} more columns are" if len(new) > 1 else " is"
    meant = _meant(new[0], [n for n in known if n not in names]) or _meant(new[0], known)
    closest = f" (the closest that it has is {meant!r})" if meant else ""
    name = new[0] if new[0].isidentifier() else f"`{new[0].replace('`', '``')}`"
    column = f"{name} {show(next(one['type'] for one in given if one['name'] == new[0]))}"
    raise InvalidInput(
        "column_unknown",
        f"column {new[0]!r}{more} not in stream {stream}, which refuses new columns{closest}; "
        f"correct the name, or {do('update_stream', stream=stream, more_columns=column)}, or for "
        f"all new columns {do('update_stream', stream=stream, on_new_column='add')}.",
    )


def _line(stream: str, field: Field, missing: Sequence[str]) -> str:
    kind = show(field["type"])
    what = f"column {field['name']!r} is new in stream {stream} ({kind})"
    if is_open(field["type"]):
        what = f"column {field['name']!r} is new in stream {stream}, and left out without a value"
    if meant := _meant(field["name"], missing):
        return f"{what}; is it a misspelt {meant!r}, which the rows do not have?"
    return f"{what}, and null in its earlier events"


def _meant(name: str, known: Collection[str]) -> str:
    """Return the name among `known` that is most like `name`, in whatever case; or nothing."""
    lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), lower, n=1)
    return lower[found[0]] if found else ""
