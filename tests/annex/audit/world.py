"""Streams and groups to which everything has happened that an audit must find in order."""

from dataclasses import dataclass

from tests.world.adjunct import Store
from tests.world.groups import Group
from tests.world.streams import Lane, staged, unique
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.model.key_space import KeyRange
from weir.model.segment import segment_name
from weir.reader_groups.groups.lifecycle import delete_reader_group, fork_reader_group
from weir.reader_groups.groups.readers import reader_offline
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.delete_stream import delete_stream
from weir.retention.run import retain


@dataclass
class World:
    """The database, its busiest stream, and who reads that."""

    database: Database
    lane: Lane
    out: Lane
    group: Group
    slow: Group
    store: Store


def halves(lane: Lane, segment: str) -> list[KeyRange]:
    """Return the two halves of the keys of a segment."""
    [[low, high]] = lane.rows(
        """SELECT key_low, key_high FROM segment
        WHERE stream_id = :s AND segment_name(segment_id) = :g""",
        g=segment,
    )
    return [KeyRange(low, (low + high) / 2), KeyRange((low + high) / 2, high)]


def split(lane: Lane, segment: str) -> None:
    lane.scale(segment, ranges=halves(lane, segment))


def merge(lane: Lane, *segments: str) -> None:
    found = lane.rows(
        """SELECT min(key_low), max(key_high) FROM segment
        WHERE stream_id = :s AND segment_name(segment_id) = ANY(:g)""",
        g=list(segments),
    )
    lane.scale(*segments, ranges=[KeyRange(*found[0])])


def read_some(group: Group, events: int, out: Lane | None = None) -> None:
    """Read a batch of so many events, with a Parquet output and an append."""
    reader = group.reader()
    batch = reader.open(events)
    if batch is None:
        return
    folder = f"o/group={group.name}/batch={batch.batch_id}/attempt={batch.attempt}/"
    outputs = [{"kind": "parquet", "output": "o", "root": "/out", "path": folder}]
    appends = []
    if out is not None:
        attempt = out.opened(batch.identity, writer=f"group {group.name}")
        appends = [staged(attempt, {out.active()[0]: 2})]
    reader.commit(batch, appends, outputs=outputs)


def lived(database: Database) -> World:
    """Return a world of two streams with scales, truncations, resets, skips, forks, stores, aligned
    groups, a reader taken offline in its batch, and a stream that was deleted and made anew."""
    gone = Lane.made(database, name="test/again")
    gone.append({"0.0": 3})
    Group.made(gone).reader().read_all()
    seal_stream(database, gone.name, request_id=unique("seal"))
    delete_stream(database, gone.name, request_id=unique("delete"))
    anew = Lane.made(database, name="test/again")
    anew.append({anew.active()[0]: 3})
    lane = Lane.made(database, retention="consumed")
    out = Lane.made(database)
    group, slow = Group.made(lane), Group.made(lane, on_gap="skip")
    store = Store.made(lane, on_gap="rebuild")
    aligned = Group.made(lane, out, aligned=True, subscriber=False)
    for i in range(6):
        for segment in lane.active():
            lane.append({segment: [3, 2]})
        read_some(group, 7, out)
        read_some(group, 10**9, out)
        if i == 1:
            split(lane, lane.active()[0])
        if i == 2:
            merge(lane, *lane.active()[:2])
        if i in (1, 2):
            lane.truncate(", ".join(f"{k}={v}" for k, v in group.cut().items()))
        if i == 3:
            read_some(slow, 6)
            reset_reader_group(
                database, group.name, "head", allow_repeat=True, request_id=unique("reset")
            )
            read_some(group, 10**9)
        store.build()
        group.checkpoint(f"c{i}")
        slow.checkpoint(f"c{i}")
        retain(database, [lane.name])
    lane.truncate(", ".join(f"{k}={v}" for k, v in group.cut().items()))
    lane.append(dict.fromkeys(lane.active(), 4))
    read_some(slow, 10**9)
    fork_reader_group(database, group.name, unique("fork"), request_id=unique("fork"))
    short = Group.made(lane)
    short.reader().read_all()
    delete_reader_group(database, short.name, request_id=unique("delete"))
    aligned.reader()
    away = Group.made(lane, subscriber=False)
    bound = away.reader().must_open().bounds[0]
    at = f"{segment_name(bound.segment_id)}={bound.start + 1}"
    reader_offline(database, away.name, "reader", at, request_id=unique("offline"))
    away.reader().read_all()
    return World(database, lane, out, group, slow, store)
