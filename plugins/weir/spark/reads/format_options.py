"""Options of the format `weir`: the limits of a micro-batch, and the reader group of a query."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.errors import InvalidInput, NotFound
from weir.model.names import reader_group_name
from weir.reader_groups.group_streams import group_streams
from weir.reader_groups.locks import no_such_group

EVERYTHING = 1 << 62  # events, bytes or files: more than any stream has
_GROUP = text("SELECT group_id, aligned FROM reader_group WHERE name = :name")
_ONE = {"": 1}
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30,
          "gb": 1 << 30, "t": 1 << 40, "tb": 1 << 40}  # fmt: skip


class Limits(NamedTuple):
    """The most that a micro-batch reads, 0 where there is no limit. In the order of a `Budget`."""

    events: int
    bytes: int
    files: int

    @classmethod
    def of(cls, options: Mapping[str, str]) -> "Limits":
        """Return the limits of a query's options. Raises InvalidInput with the wrong value."""
        return cls(
            _number(options, "maxEventsPerTrigger"),
            _number(options, "maxBytesPerTrigger", _UNITS),
            _number(options, "maxFilesPerTrigger"),
        )


class Group(NamedTuple):
    """The reader group of a query, and the one stream that it reads."""

    name: str
    group_id: int
    stream: str


def read_group(connection: Connection, name: str, stream: str) -> Group:
    """Return a group that a query may read. Raises NotFound, also for a stream that was
    deleted, and InvalidInput for an aligned group, and one that reads other streams."""
    row = connection.execute(_GROUP, {"name": reader_group_name(name)}).one_or_none()
    if row is None:
        raise no_such_group(name)
    if row.aligned:
        raise InvalidInput(
            "group_unsuitable",
            f"reader group {name} is aligned, and a streaming query can't end its micro-batches at "
            "common clocks; give a group that is not aligned.",
        )
    streams = group_streams(connection, name)
    if len(streams) != 1:
        raise InvalidInput(
            "group_unsuitable",
            f"reader group {name} reads {len(streams)} streams "
            f"({', '.join(one.name for one in streams)}), and a streaming query reads one; give a "
            "group that reads one stream, and join the frames of two queries.",
        )
    [one] = streams
    if stream and one.name != stream:
        raise InvalidInput(
            "group_unsuitable",
            f"reader group {name} reads stream {one.name}, not {stream}; give one of its own.",
        )
    if not one.exists:
        raise NotFound(
            "stream_deleted",
            f"stream {one.name}, which reader group {name} reads, was deleted; create another "
            "reader group for a stream that was made anew under this name.",
        )
    return Group(name, int(row.group_id), one.name)


def _number(options: Mapping[str, str], name: str, units: Mapping[str, int] = _ONE) -> int:
    given = options.get(name)
    if given is None:
        return 0
    found = re.fullmatch(r"(0*[1-9][0-9]{0,14})\s*([A-Za-z]*)", given.strip())
    if found is None or found[2].lower() not in units:
        unit = ", or a number with a unit, such as 128m" if len(units) > 1 else ""
        raise InvalidInput(
            "argument_invalid",
            f"{name} is {given!r}; it must be a whole number, 1 or more{unit}.",
        )
    return int(found[1]) * units[found[2].lower()]
