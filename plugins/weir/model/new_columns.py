"""What an append may change in the columns of its stream (semantics 12.4): it adds new ones with a
word, or is refused. A wrong name is a fault of the whole file, so its rows are not set aside."""

import difflib
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from weir.errors import Conflict, InvalidInput
from weir.front_ends import do
from weir.model.names import REJECTED, look_alike
from weir.model.schema import (
    VOID,
    Field,
    Kind,
    merge,
    same_type,
    show,
    simple_types,
    stored_name,
    wider,
)

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
        """Log a warning for each new column; say which columns of the stream the rows lack and
        have no default."""
        for line in self.new:
            log.warning("%s", line)
        defaults = {field["name"] for field in self.fields if "default" in field}
        null = [name for name in self.missing if name not in defaults]
        if len(null) == 1:
            say(f"the rows do not have column {null[0]!r} of the stream, which is null")
        elif null:
            more = f" and {len(null) - 5:,} more" if len(null) > 5 else ""
            say(
                f"the rows do not have the columns {', '.join(map(repr, null[:5]))}{more} "
                "of the stream, which are null"
            )


def fitting(
    stream: str,
    current: list[Field] | None,
    given: list[Field],
    on_new_column: str,
    dropped: Collection[str] = (),
) -> Fitting:
    """Return how rows with the columns `given` fit a stream with the columns `current`; None
    before its first append. `dropped`: names in files of columns that the stream no longer has.

    Raises InvalidInput like `weir.model.schema.fitted`, and for a new column if the stream refuses
    them, also for one without a value.
    """
    fields = fitted(stream, current, given, dropped)
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


def lacking_defaults(fields: list[Field], given: list[Field]) -> list[Field]:
    """Return the columns with a default that rows of the columns `given` lack. The files of an
    append have them, so that all files of a version have all its defaults."""
    names = {field["name"] for field in given}
    return [field for field in fields if "default" in field and field["name"] not in names]


def combine(
    stream: str,
    current: list[Field] | None,
    planned: list[Field],
    on_new_column: str = ADD,
    dropped: Collection[str] = (),
) -> list[Field]:
    """Return the columns of both schemas, for two appends that added columns at the same time.

    Raises Conflict if they contradict each other, if the stream refuses what the later one adds,
    or if a column was renamed, dropped, widened or added with a default since the append began.
    """
    try:
        _check_same(current or [], planned, dropped)
        both = merge(stream, current, planned, dropped)
        stored = {field["name"]: stored_name(field) for field in both}
        for field in planned:  # a new one may have found its name in files taken, but for the case
            if stored[field["name"]] != stored_name(field):
                raise _changed(f"column {field['name']!r} would have another name in files")
        if current:
            _check_new(stream, current, planned, on_new_column)
    except InvalidInput as error:
        raise Conflict(
            "schema_changed", f"another append changed the schema in the meantime: {error.sentence}"
        ) from None
    return both


def _check_same(current: list[Field], planned: list[Field], dropped: Collection[str]) -> None:
    """Check that the columns of files that were written are still called what they were called."""
    names = {stored_name(field): field["name"] for field in current}
    types = {field["name"]: field["type"] for field in current}
    stored = {field["name"]: stored_name(field) for field in current}
    gone = {name.lower() for name in dropped}
    written = {field["name"] for field in planned}
    for field in current:
        if "default" in field and field["name"] not in written:
            raise _changed(f"column {field['name']!r} was added with a default")
    for field in planned:
        name, in_files = field["name"], stored_name(field)
        if names.get(in_files, name) != name or stored.get(name, in_files) != in_files:
            raise _changed(f"column {name!r} was renamed")
        if not same_type(types.get(name, field["type"]), field["type"]):
            kinds = f"{show(field['type'])}, and is {show(types[name])} now"
            raise InvalidInput("column_type_differs", f"column {name!r} was {kinds}; append again.")
        if in_files not in names and in_files.lower() in gone:
            raise _changed(f"column {name!r} was dropped")


def _changed(what: str) -> Conflict:
    return Conflict(
        "schema_changed", f"the columns changed since the append began: {what}; append again."
    )


def _check_new(stream: str, current: list[Field], given: list[Field], on_new_column: str) -> None:
    known, names = [field["name"] for field in current], [field["name"] for field in given]
    new = sorted(set(names) - set(known), key=names.index)
    if on_new_column != REFUSE or not new:
        return
    more = f" and {len(new) - 1:,} more columns are" if len(new) > 1 else " is"
    like = meant(new[0], [n for n in known if n not in names]) or meant(new[0], known)
    closest = f" (the closest that it has is {like!r})" if like else look_alike(new[0], known)
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
    if like := meant(field["name"], missing):
        return f"{what}; is it a misspelt {like!r}, which the rows do not have?"
    return f"{what}, and null in its earlier events"


def meant(name: str, known: Collection[str]) -> str:
    """Return the name among `known` that is most like `name`, in whatever case; or nothing."""
    lower = {one.lower(): one for one in known}
    found = difflib.get_close_matches(name.lower(), lower, n=1)
    return lower[found[0]] if found else ""


def fitted(
    stream: str, current: list[Field] | None, given: list[Field], dropped: Collection[str] = ()
) -> list[Field]:
    """Return the schema after appending rows with these columns, of which some need a conversion.

    A column of a narrower type than the stream's is widened. A column in which the type is not
    known (`VOID`, also within it) gets the stream's type; if there is none, it is left open, and
    left out. Raises like `merge`.
    """
    known = {field["name"]: field["type"] for field in current or []}
    closed = list[Field]()
    for field in given:
        kind, wanted = field["type"], known.get(field["name"])
        if wanted is not None and (wide := wider(kind, wanted)) and same_type(wide, wanted):
            kind = wanted
        if not is_open(kind):
            closed.append({**field, "type": kind})
    if given and not closed and current is None:
        raise InvalidInput(
            "columns_invalid",
            f"no column of the rows for stream {stream} has a value, so no type is known; append "
            "rows with values first, or "
            f"{do('update_stream', stream=stream, more_columns='COLUMN TYPE')}.",
        )
    return merge(stream, current, closed, dropped) if closed or not current else current


def is_open(kind: Kind) -> bool:
    """Return whether the type, or a part of it, is not known."""
    return VOID in simple_types(kind)
