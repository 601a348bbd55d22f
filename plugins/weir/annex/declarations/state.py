"""Read what the database has of what a file declares, in a constant number of statements."""

from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, text

from weir.adjunct.stores import AdjunctStore, read_stores
from weir.annex.declarations.declared import Declared
from weir.database import columns
from weir.model.group_configuration import GroupConfiguration
from weir.model.key_space import KeyRange
from weir.model.names import stream_name
from weir.model.schema import Field
from weir.model.stream_configuration import Configuration
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
    streams = connection.execute(
        text(
            f"""SELECT s.stream_name, s.state, {_of("s", Configuration)}, c.fields,
                c.dropped
            FROM stream s LEFT JOIN stream_schema c
                ON c.stream_id = s.stream_id AND c.version = s.schema_version
            WHERE s.state <> 'deleted' AND (s.stream_name = ANY (CAST(:names AS text[]))
                OR s.stream_id IN (SELECT r.stream_id FROM reader_group_stream r
                    JOIN reader_group g USING (group_id)
                    WHERE g.name = ANY (CAST(:groups AS text[]))))"""  # noqa: S608 - constants
        ),
        {"names": sorted(named), "groups": sorted(declared.consumers)},
    ).mappings()
    groups = connection.execute(
        text(
            f"""SELECT g.name, {_of("g", GroupConfiguration)}, g.consumer,
                ARRAY(SELECT s.stream_name FROM reader_group_stream r JOIN stream s
                      USING (stream_id) WHERE r.group_id = g.group_id) AS streams,
                ARRAY(SELECT jsonb_build_array(s.stream_name, p.key_low, p.key_high, p.label)
                      FROM reader_group_pin p JOIN stream s USING (stream_id)
                      WHERE p.group_id = g.group_id) AS pins
            FROM reader_group g WHERE g.name = ANY (CAST(:names AS text[]))"""  # noqa: S608 - constants
        ),
        {"names": sorted({*declared.groups, *declared.consumers})},
    ).mappings()
    return Known(
        {row["stream_name"]: _stream(dict(row)) for row in streams},
        read_stores(connection, sorted(declared.stores)) if declared.stores else {},
        {row["name"]: _group(dict(row)) for row in groups},
    )


def _of(table: str, described: type) -> str:
    return ", ".join(f"{table}.{one.name}" for one in fields(described))


def _stream(row: dict[str, Any]) -> KnownStream:
    configuration = columns.taken(Configuration, row)
    fields, dropped = row["fields"] or [], row["dropped"] or []
    return KnownStream(configuration, row["state"], fields, dropped)


def _group(row: dict[str, Any]) -> KnownGroup:
    pins = tuple(
        sorted(
            Pin(stream_name(s), KeyRange(low, high), label) for s, low, high, label in row["pins"]
        )
    )
    configuration = columns.taken(GroupConfiguration, row)
    return KnownGroup(
        configuration, tuple(sorted(row["streams"])), tuple(sorted(pins)), row["consumer"]
    )
