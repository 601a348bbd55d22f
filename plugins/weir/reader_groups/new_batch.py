"""Open a new batch: give the reader its fair share of the group, and fix what it reads next."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from sqlalchemy import Connection, text

from weir.controller.cuts import load_cuts
from weir.controller.locks import LockedGroup
from weir.model.assignment import assign, unread_events
from weir.model.bounds import Bound, Graph, bounds_of_stream, recorded
from weir.model.segment import Segment
from weir.model.stream_cut import StreamCut
from weir.reader_groups.budget import ALL, Budget, Fit, fit
from weir.reader_groups.pins import read_pins, reserved
from weir.reader_groups.positions import (
    Key,
    Position,
    advance,
    read_graphs,
    read_lags,
    read_positions,
)


@dataclass(frozen=True)
class Batch:
    """An open batch, and the token under which a reader holds it."""

    group_id: int
    group: str
    batch_id: int
    reader_id: str
    token: int
    attempt: int
    bounds: tuple[Bound, ...]
    events: int
    on_gap: str

    @property
    def identity(self) -> str:
        """The name of its results. A group that is created again under the same name has others."""
        return f"{self.group_id}.{self.batch_id}"


def open_new(
    connection: Connection,
    group: LockedGroup,
    reader_id: str,
    token: int,
    budget: Budget,
    until: dict[int, dict[str, Any]],
    expected_readers: int,
) -> Batch | None:
    positions = read_positions(connection, group)
    graphs = read_graphs(connection, group, positions)
    mine, readers = _share(connection, group, positions, graphs, reader_id, expected_readers)
    bounds, size = _plan(connection, positions, graphs, mine, readers, budget, until)
    if not bounds:
        if expected_readers == 0:
            return None
        # The share of readers that are expected but have not joined is unread: take it, too.
        return open_new(connection, group, reader_id, token, budget, until, expected_readers=0)
    events = sum(bound.end - bound.start for bound in bounds)
    if events == 0:  # it passes only ends of sealed segments: the positions move at once
        advance(connection, group, bounds, reader_id)
        return open_new(connection, group, reader_id, token, budget, until, expected_readers)
    batch = Batch(
        group.group_id, group.name, group.next_batch, reader_id, token, 1, tuple(bounds), events,
        group.configuration.on_gap,
    )  # fmt: skip
    connection.execute(
        text(
            """WITH counted AS (
                UPDATE reader_group SET next_batch = next_batch + 1 WHERE group_id = :group_id
            )
            INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state,
                                      bounds, events, bytes, opened_at)
            VALUES (:group_id, :group, :batch_id, :reader_id, :token, 'open',
                    CAST(:bounds AS jsonb), :events, :bytes, clock_timestamp())"""
        ),
        {
            "group_id": group.group_id,
            "group": group.name,
            "batch_id": batch.batch_id,
            "reader_id": reader_id,
            "token": token,
            "bounds": recorded(bounds),
            "events": events,
            "bytes": size,
        },
    )
    return batch


def _share(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    graphs: dict[int, Graph],
    reader_id: str,
    expected_readers: int,
) -> tuple[set[Key], int]:
    """Assign this reader its fair share of the free segments, and free those that others are to
    have. Returns the keys of what it may read now, and the number of readers."""
    labels = {
        row.reader_id: row.label
        for row in connection.execute(
            text("SELECT reader_id, label FROM reader WHERE group_id = :g ORDER BY reader_id"),
            {"g": group.group_id},
        )
    }
    # Readers that are expected but have not joined keep their share free ("~" sorts last).
    expected = [f"~{i}" for i in range(len(labels), expected_readers)]
    free = {
        p.key: p.reader_id for p in positions if p.batch_id is None and p.next_offset is not None
    }
    if [*labels, *expected] == [reader_id]:
        mine = set(free)
    else:
        wanted = _assigned(connection, group, positions, graphs, labels, expected)
        mine = {key for key in free if wanted.get(key) == reader_id}
    take = sorted(key for key in mine if free[key] is None)
    drop = sorted(key for key, owner in free.items() if owner == reader_id and key not in mine)
    if take or drop:
        connection.execute(
            text(
                """UPDATE reader_group_segment p SET reader_id = m.reader_id,
                    state = CASE WHEN m.reader_id IS NULL THEN 'unassigned' ELSE 'assigned' END
                FROM unnest(CAST(:streams AS bigint[]), CAST(:segments AS bigint[]),
                            CAST(:readers AS text[])) AS m (stream_id, segment_id, reader_id)
                WHERE p.group_id = :g AND p.stream_id = m.stream_id
                  AND p.segment_id = m.segment_id"""
            ),
            {
                "g": group.group_id,
                "streams": [stream_id for stream_id, _ in [*take, *drop]],
                "segments": [segment_id for _, segment_id in [*take, *drop]],
                "readers": [reader_id] * len(take) + [None] * len(drop),
            },
        )
    own = {key for key in mine if free[key] in (None, reader_id)}
    return own, len(labels) + len(expected)


def _assigned(
    connection: Connection,
    group: LockedGroup,
    positions: Sequence[Position],
    graphs: dict[int, Graph],
    labels: dict[str, str],
    expected: list[str],
) -> dict[Key, str]:
    """Return by position which reader is to own it, if several share them."""
    loads: dict[Key, int] = {}
    for stream_id, graph in graphs.items():
        for segment, load in unread_events(_present(positions, stream_id), graph).items():
            loads[stream_id, segment.segment_id] = load
    owners = {p.key: p.reader_id for p in positions if p.reader_id is not None}
    held = {p.key for p in positions if p.batch_id is not None}
    lags = read_lags(connection, group)
    pinned = reserved(positions, read_pins(connection, group), labels, expected)
    return assign(loads, owners, [*labels, *expected], held=held, lags=lags, reserved=pinned)


def _plan(
    connection: Connection,
    positions: Sequence[Position],
    graphs: dict[int, Graph],
    mine: set[Key],
    readers: int,
    budget: Budget,
    until: dict[int, dict[str, Any]],
) -> tuple[list[Bound], int]:
    """Return the bounds of the next batch, and their bytes."""
    shares: dict[int, int] = {}
    if readers > 1:
        for stream_id, graph in graphs.items():
            unread = unread_events(_present(positions, stream_id), graph)
            shares[stream_id] = ceil(sum(unread.values()) / readers)
    stops = {s: _stop(connection, s, until[s], graphs[s]) for s in graphs if s in until}
    theirs = [p for p in positions if p.key not in mine]

    def bounds_within(fit: Fit) -> list[Bound]:
        bounds = []
        for stream_id, graph in graphs.items():
            bounds += bounds_of_stream(
                stream_id,
                _present([p for p in positions if p.key in mine], stream_id),
                [p.segment for p in theirs if p.stream_id == stream_id],
                graph,
                stops.get(stream_id),
                partial(fit.end, stream_id),
                shares.get(stream_id),
            )
        return bounds

    readable = bounds_within(ALL)
    within = fit(connection, readable, budget)
    return (readable if within.ends is None else bounds_within(within)), within.bytes


def _present(positions: Sequence[Position], stream_id: int) -> dict[Segment, int]:
    """Return the next offset by segment, for the positions in a stream that can be read."""
    return {
        p.segment: p.next_offset
        for p in positions
        if p.stream_id == stream_id and p.next_offset is not None
    }


def _stop(
    connection: Connection, stream_id: int, until: dict[str, Any], graph: Graph
) -> StreamCut | None:
    """Return the cut to stop at, or None if it lies beyond the whole graph, as in most of a run."""
    offsets = [until.get(segment.name) for segment in graph.states]
    ends = [state.end for state in graph.states.values()]
    if all(isinstance(o, int) and o >= end for o, end in zip(offsets, ends, strict=True)):
        return None
    return load_cuts(connection, stream_id, until)[0]
