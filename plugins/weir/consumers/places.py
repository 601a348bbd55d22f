"""The places of events in the results of a consumer: dropped, or used as the order of the rows."""

from collections.abc import Collection, Mapping, Set

from sqlalchemy import Connection

from weir.consumers.engine import Engine, Frame
from weir.consumers.outputs import Output
from weir.errors import InvalidInput
from weir.front_ends import do, give
from weir.model.names import shortened
from weir.model.schema import PLACES
from weir.model.stream_configuration import Configuration
from weir.model.transforms import value_of
from weir.queries.consumers import places as sql

_NEWER = "add newest=COLUMN with the columns that say which row is newer"


def without_places(engine: Engine[Frame], frame: Frame, wanted: Set[str] = frozenset()) -> Frame:
    """Return the rows without the places that a read has added, except for `wanted` ones.

    A function that returns only some of them has chosen them, so they stay.
    """
    if not set(PLACES) <= {field["name"] for field in engine.columns(frame)}:
        return frame
    return engine.without(frame, [name for name in PLACES if name not in wanted])


def check_last_row_known(
    connection: Connection,
    streams: Collection[str],
    order: str,
    output: Output,
) -> list[str]:
    """Check that the last row of each key of an upsert is known, as `check_order_known`, and return
    the same. `streams`: the names of those that are delivered."""
    rows = sql.keys_of(connection, names=list(streams))
    found = {row.stream_name: Configuration(row.routing_key, row.on_missing_key) for row in rows}
    return check_order_known(found, order, output)


def check_key_kept(
    engine: Engine[Frame],
    output: Output,
    columns: Collection[str],
    result: Frame,
    frames: Mapping[str, Frame],
) -> None:
    """Check that a result for an upsert has these columns of its key as the events have them: those
    that are computed may be equal for events with several routing keys, which have no common order.

    `columns`: as `check_order_known` returns them. `frames`: the events by the names of their
    streams. Raises InvalidInput.
    """
    there = {field["name"] for field in engine.columns(result)}
    names = [name for name in columns if name in there]
    for stream, events in frames.items():
        if names and (name := engine.changed(names, result, events)):
            raise InvalidInput(
                "output_invalid",
                f"column {name!r}, by which {output} is upserted, is not the column of stream "
                f"{stream} as it was read (it is computed, renamed, or made by a Python "
                f"function), so events of one key may be read in any order; {_NEWER}.",
            )


def check_order_known(
    streams: Mapping[str, Configuration], order: str, output: Output
) -> list[str]:
    """Check that the last row of each key of an upsert is known, however the events of these
    streams are divided between batches, readers and segments. Raises InvalidInput.

    Events are in order only if they are of one stream and have the same routing key. So the columns
    of the routing key must be in the key of the table, unless other columns say which row is newer.
    Events that are spread because they have no routing key are in no order. Returns the columns of
    the key that must be those of the routing key, which `check_key_kept` is to check.
    """
    kept: list[str] = []
    how = output.publication
    if how.newest:
        return kept
    if order == "none":
        raise InvalidInput(
            "output_invalid",
            f"{output} is upserted, but the consumer reads its events in no order; "
            f"{give(order='stream')}, or {_NEWER}.",
        )
    if len(streams) > 1:
        raise InvalidInput(
            "output_invalid",
            f"{output} is upserted from the events of {len(streams)} streams "
            f"({shortened(', '.join(streams))}), and events of one key that are in several streams "
            f"are read in any order; {_NEWER}.",
        )
    for stream, configuration in streams.items():
        key = configuration.routing_key
        if configuration.on_missing_key == "spread":
            raise InvalidInput(
                "output_invalid",
                f"{output} is upserted, but stream {stream} spreads events without a routing key, "
                f"so these are read in any order; {_NEWER}, or "
                f"{do('update_stream', stream=stream, on_missing_key='quarantine')}.",
            )
        used = {name.lower() for name in value_of(key, "routing key").columns}
        kept += [name for name in how.key if name.lower() in used]
        if not used <= {name.lower() for name in how.key}:
            raise InvalidInput(
                "output_invalid",
                f"the key of {output} ({', '.join(how.key)}) does not hold the routing key of "
                f"stream {stream} ({key}), so events of one key may be read in any order; "
                f"{_NEWER}.",
            )
    return kept
