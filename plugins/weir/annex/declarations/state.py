"""Read what the database has of what a file declares, in a constant number of statements."""

from dataclasses import dataclass

from sqlalchemy import Connection

from weir.adjunct.stores import AdjunctStore, read_stores
from weir.annex.declarations.declared import Declared
from weir.database import columns
from weir.model.group_configuration import GroupConfiguration
from weir.model.key_space import KeyRange
from weir.model.names import stream_name
from weir.model.schema import Field
from weir.model.stream_configuration import Configuration
from weir.queries.annex.declarations import state as sql
from weir.reader_groups.groups.pins import Pin


@dataclass(frozen=True)
class KnownStream:
    """A stream that exists: its settings, its columns as Spark's JSON fields, and the names in
    files of columns that it had."""

    configuration: Configuration
    state: str
    fields: list[Field]
    dropped: list[str]


@dataclass(frozen=True)
class KnownGroup:
    """A reader group that exists, and the consumer that was declared for it, if any."""

    configuration: GroupConfiguration
    streams: tuple[str, ...]
    pins: tuple[Pin, ...]
    consumer: dict[str, object] | None


@dataclass(frozen=True)
class Known:
    """What exists of what is declared, by name. `streams` also has the streams that declared
    groups, consumers and stores read."""

    streams: dict[str, KnownStream]
    stores: dict[str, AdjunctStore]
    groups: dict[str, KnownGroup]


def read_known(connection: Connection, declared: Declared) -> Known:
    """Return what exists of the declared streams and stores, of the declared groups and the groups
    of consumers, and of the streams that these read."""
    named = {
        *declared.streams,
        *(str(store.stream) for store in declared.stores.values()),
        *(s for group in declared.groups.values() for s in group.reads),
    }
    streams = sql.streams(connection, names=sorted(named), groups=sorted(declared.consumers))
    groups = sql.groups(connection, names=sorted({*declared.groups, *declared.consumers}))
    return Known(
        {row.stream_name: _stream(row) for row in streams},
        read_stores(connection, sorted(declared.stores)) if declared.stores else {},
        {row.name: _group(row) for row in groups},
    )


def _stream(row: sql.StreamState) -> KnownStream:
    settings = columns.taken(Configuration, row._asdict())
    return KnownStream(settings, row.state, row.fields or [], row.dropped or [])


def _group(row: sql.GroupState) -> KnownGroup:
    pins = sorted(
        Pin(stream_name(s), KeyRange(low, high), label) for s, low, high, label in row.pins
    )
    configuration = columns.taken(GroupConfiguration, row._asdict())
    return KnownGroup(configuration, tuple(sorted(row.streams)), tuple(pins), row.consumer)
