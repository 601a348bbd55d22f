"""Open a new batch: give the reader its fair share of the group, and fix what it reads next."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from sqlalchemy import Connection

from weir.model.assignment import assign, relative_rates, unread_events
from weir.model.bounds import Graph, recorded
from weir.queries.reader_groups.batches import new as sql
from weir.reader_groups.batch import Batch
from weir.reader_groups.batches.plan import Wanted, cut_to_stop_at, plan, present
from weir.reader_groups.groups.pins import read_pins, reserved
from weir.reader_groups.locks import LockedGroup
from weir.reader_groups.positions import (
    Key,
    Position,
    advance,
    read_graphs,
    read_lags,
    read_positions,
    read_rates,
)


def open_new(
    connection: Connection,
    group: LockedGroup,
    reader_id: str,
    token: int,
    wanted: Wanted,
    labels: Mapping[str, str],
    expected_readers: int,
) -> Batch | None:
    """Open the reader's next batch over its fair share of the group; None if it may read nothing
    now. `labels`: of the group's readers. `expected_readers`: how many readers the group is to be
    shared among, at least."""
    positions = read_positions(connection, group)
    graphs = read_graphs(connection, group, positions)
    if not group.configuration.aligned:
        wanted = replace(wanted, closed=None)
        mine, readers = _share(
            connection, group, positions, graphs, wanted, reader_id, labels, expected_readers
        )
    elif any(position.batch_id is not None for position in positions):
        return None  # an aligned group has one batch at a time
    else:
        mine, readers = _take_all(connection, group, positions, reader_id), 1
    planned = plan(connection, group, positions, graphs, mine, readers, wanted)
    bounds = planned.bounds
    if not bounds:
        if expected_readers == 0 or group.configuration.aligned:
            return None
        # The share of readers that are expected but have not joined is unread: take it, too.
        return open_new(connection, group, reader_id, token, wanted, labels, expected_readers=0)
    events = sum(bound.end - bound.start for bound in bounds)
    if events == 0:  # it passes only ends of sealed segments: the positions move at once
        advance(connection, group, bounds, reader_id)
        return open_new(connection, group, reader_id, token, wanted, labels, expected_readers)
    batch = Batch(
        group.group_id, group.name, group.next_batch, reader_id, token, 1, tuple(bounds), events,
        group.configuration.on_gap, planned.up_to,
    )  # fmt: skip
    opened = sql.open(
        connection,
        group_id=group.group_id,
        group=group.name,
        batch_id=batch.batch_id,
        reader_id=reader_id,
        token=token,
        bounds=recorded(bounds),
        events=events,
        bytes=planned.bytes,
        read_order=wanted.reading.order,
        readers=readers,
        up_to=planned.up_to,
    )
    return replace(batch, complete_until=opened.complete_until, events=opened.events)


def _share(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    graphs: dict[int, Graph],
    wanted: Wanted,
    reader_id: str,
    labels: Mapping[str, str],
    expected_readers: int,
) -> tuple[set[Key], int]:
    """Assign this reader its fair share of the free segments, and free those that others are to
    have. Returns the keys of what it may read now, and the number of readers."""
    # Readers that are expected but have not joined keep their share free ("~" sorts last).
    expected = [f"~{i}" for i in range(len(labels), expected_readers)]
    free = {
        p.key: p.reader_id for p in positions if p.batch_id is None and p.next_offset is not None
    }
    if [*labels, *expected] == [reader_id]:
        mine = set(free)
    else:
        owners = _assigned(connection, group, positions, graphs, wanted, labels, expected)
        mine = {key for key in free if owners.get(key) == reader_id}
    take = sorted(key for key in mine if free[key] is None)
    drop = sorted(key for key, owner in free.items() if owner == reader_id and key not in mine)
    _give(connection, group, reader_id, take, drop)
    own = {key for key in mine if free[key] in (None, reader_id)}
    return own, len(labels) + len(expected)


def _take_all(
    connection: Connection, group: LockedGroup, positions: Sequence[Position], reader_id: str
) -> set[Key]:
    """Assign all segments that can be read to this reader, whoever owned them. Returns the keys of
    their positions."""
    free = {p.key: p.reader_id for p in positions if p.next_offset is not None}
    take = sorted(key for key, owner in free.items() if owner != reader_id)
    _give(connection, group, reader_id, take, [])
    return set(free)


def _give(
    connection: Connection,
    group: LockedGroup,
    reader_id: str,
    take: Sequence[Key],
    drop: Sequence[Key],
) -> None:
    """Assign the segments `take` to a reader, and free the segments `drop`."""
    if not take and not drop:
        return
    sql.give(
        connection,
        group_id=group.group_id,
        streams=[stream_id for stream_id, _ in [*take, *drop]],
        segments=[segment_id for _, segment_id in [*take, *drop]],
        readers=[reader_id] * len(take) + [None] * len(drop),
    )


def _assigned(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    graphs: dict[int, Graph],
    wanted: Wanted,
    labels: Mapping[str, str],
    expected: list[str],
) -> dict[Key, str]:
    """Return by position which reader is to own it, if several share them."""
    loads: dict[Key, int] = {}
    for stream_id, graph in graphs.items():
        end = None
        if stream_id in wanted.ends:
            end = cut_to_stop_at(connection, stream_id, wanted.ends[stream_id], graph)
        for segment, load in unread_events(present(positions, stream_id), graph, end).items():
            loads[stream_id, segment.segment_id] = load
    owners = {p.key: p.reader_id for p in positions if p.reader_id is not None}
    in_batches = {p.key for p in positions if p.batch_id is not None}
    lags = read_lags(connection, group)
    pinned = reserved(positions, read_pins(connection, group), labels, expected)
    # With nothing unread, readers share segments evenly.
    rates = relative_rates(read_rates(connection, group)) if any(loads.values()) else {}
    return assign(
        loads,
        owners,
        [*labels, *expected],
        in_batches=in_batches,
        lags=lags,
        reserved=pinned,
        rates=rates,
    )
