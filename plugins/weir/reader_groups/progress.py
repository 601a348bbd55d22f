"""How far groups and streams are, for those that wait for it: one statement for all of them."""

import json
from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.model.stream_cut import StreamCut
from weir.queries.reader_groups import progress as sql

Thing = tuple[str, str]  # a kind (`group`, `stream` or `aim`) and a name


@dataclass(frozen=True)
class Condition:
    """What somebody waits for.

    `group`: at most or at least so many events are unread, or everything that was committed before
    a clock is read. `stream`: at least so many events were ever appended, or it is complete to an
    event time. `aim`: a reader group has read up to cuts, which are its name.
    """

    kind: str
    name: str
    at_least: int | None = None
    at_most: int | None = None
    until: int | None = None  # microseconds since 1970 UTC

    @property
    def thing(self) -> Thing:
        return self.kind, self.name

    def met(self, progress: sql.Progress) -> bool:
        """Return whether it is met by a row of `progress_of`."""
        if self.at_least is not None:
            return progress.events >= self.at_least
        if self.at_most is not None:
            return progress.events <= self.at_most
        assert self.until is not None, self
        if self.kind == "stream":
            return progress.clock is not None and progress.clock >= self.until
        read = progress.clock is None or progress.clock >= self.until
        return read and progress.now >= self.until  # later commits may come before then


def aim_of(connection: Connection, reader_group: str, cuts: dict[int, StreamCut]) -> str:
    """Return the name of the aim that a group has read up to cuts, which are by stream id."""
    found = {str(stream_id): cut.to_json() for stream_id, cut in cuts.items()}
    aim = json.dumps({"reader_group": reader_group, "cuts": found})
    return sql.written(connection, aim=aim)


def progress_of(database: Database, things: Collection[Thing]) -> dict[Thing, sql.Progress]:
    """Return how far things are; what does not exist is left out."""
    named: dict[str, list[str]] = {"group": [], "stream": [], "aim": []}
    for kind, name in sorted(set(things)):
        named[kind].append(name)
    aims = "[" + ",".join(named["aim"]) + "]"
    rows = database.transaction(
        lambda c: sql.progress_of(c, group=named["group"], stream=named["stream"], aim=aims)
    )
    return {(row.kind, row.name): row for row in rows}
