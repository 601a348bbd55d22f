"""Pictures of a stream and of a reader group: their pages' maps and charts, with their data, in a
file that needs no server."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from sqlalchemy import Connection

from weir.controller.times import Moment, parse_span
from weir.database.connection import Database
from weir.model.clock import to_clock
from weir.model.names import reader_group_name, stream_name
from weir.pages.over_time import Kept, Unread, kept_over_time, unread_over_time
from weir.pages.shells import in_one_file
from weir.pages.stream_map import KeyMap, key_map

WIDTH = 1200  # pixels, for which a map has rates


@dataclass(frozen=True)
class Picture:
    """What a picture has: the map of a stream and the bytes that it kept, or what a group had not
    read of its streams."""

    of: str
    at: datetime
    map: KeyMap | None = None
    kept: Kept | None = None
    unread: tuple[Unread, ...] = ()


def picture_of(
    database: Database, of: str, since: Moment | None = None, until: Moment | None = None
) -> str:
    """Return a picture of a stream, or of a reader group, as a page of HTML that loads nothing:
    see `StreamStore.picture`."""
    found = seen(database, of, since, until)
    return in_one_file("picture", json.dumps(asdict(found), default=datetime.isoformat))


def seen(
    database: Database, of: str, since: Moment | None = None, until: Moment | None = None
) -> Picture:
    """Return what `picture_of` shows. Raises NotFound, and InvalidInput for times without any."""
    begin, end = (None if at is None else to_clock(at) for at in parse_span(since, until))

    def read(connection: Connection) -> Picture:
        now = datetime.now(UTC)
        if "/" not in of:
            unread = unread_over_time(connection, reader_group_name(of), begin, end)
            return Picture(of, now, unread=tuple(unread))
        stream = stream_name(of)
        shown = key_map(connection, stream, begin, end, WIDTH)
        times = to_clock(shown.since), to_clock(shown.until)
        return Picture(of, now, shown, kept_over_time(connection, stream, *times))

    return database.snapshot(read)
