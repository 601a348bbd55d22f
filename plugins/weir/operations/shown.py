"""The seam of the pages: tables that they show, of what is a view of the database."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.errors import InvalidInput
from weir.model.names import shortened

MOST = 50  # rows that are shown at once


@dataclass(frozen=True)
class Part:
    """Some rows of a table, and what to give as `after` for those that follow; empty: none do.
    Each row has the fields of a statement's row."""

    rows: Sequence[object]
    next: str = ""


@dataclass(frozen=True)
class Table:
    """A table that the pages show.

    `name`: that of its address. `title` and `about`: what it is, for a person; `none`: what to say
    where it has no row. `part`: returns some rows: of a stream, or of all if that is empty, after
    `next` of the part before, or from the beginning. `of_stream`: it is of one stream only.
    """

    name: str
    title: str
    about: str
    none: str
    part: Callable[[Connection, str, str], Part]
    of_stream: bool = False


def counted(rows: Callable[[Connection, str, int], Sequence[object]]) -> Callable[..., Part]:
    """Return the parts of a table whose statement passes so many rows. `rows`: returns at most one
    more than `MOST`, of a stream, after so many."""

    def part(connection: Connection, stream: str, after: str) -> Part:
        passed = passed_of(after)
        found = rows(connection, stream, passed)
        return Part(found[:MOST], str(passed + MOST) if len(found) > MOST else "")

    return part


def passed_of(after: str, default: int = 0) -> int:
    """Return the number that `next` of a part is. Raises InvalidInput for any other text."""
    if after and not (after.isascii() and after.isdigit() and len(after) < 10):
        raise InvalidInput(
            "argument_invalid", f"after is {shortened(after)}; give `next` of the page before."
        )
    return int(after or default)
