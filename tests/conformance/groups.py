"""What a case says of a reader group, as one in the database: in the words of the file.

An event stands for what the case calls a byte.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.cases import CASES
from tests.world.groups import Group, Reader
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.reader_groups.checkpoints.lifecycle import checkpoint

# By case, and by the place in its list of answers (or its key): Weir's answer and the reason.
Different = Mapping[str, Mapping[int | str, tuple[Any, str]]]

OFFSETS_MOVE = "positions move at batch commits, which are durable"


def expected(case_id: str, different: Different) -> Any:
    """Return what Weir should say to a case."""
    found = CASES[case_id]["expected"]
    if isinstance(found, dict) and "recommended" in found:
        found = found["recommended"]
    changes = different.get(case_id, {})
    found = found.copy() if changes else found
    for place, (said, _) in changes.items():
        assert found[place] != said, "this is no difference"
        found[place] = said
    return found


def grouped(
    database: Database, starts: Sequence[int], events: int = 0, **options: Any
) -> tuple[Lane, Group]:
    """Return a stream, and a group that starts at `starts`. Each segment has so many events, or as
    many as its start needs."""
    lane = Lane.made(database, segments=len(starts))
    if any(starts) or events:
        lane.append({f"{i}.0": max(at, events) for i, at in enumerate(starts) if max(at, events)})
    start = ", ".join(f"{i}.0={at}" for i, at in enumerate(starts))
    return lane, Group.made(lane, start=start, **options)


def position(group: Group, lane: Lane | None = None) -> dict[str, int]:
    """Return the offset of a group in each segment, by the segment's number: so do cases with a
    single epoch name their segments."""
    return {name.split(".")[0]: offset for name, offset in group.cut(lane).items()}


def acquired(group: Group, *readers: Reader) -> int:
    """Return how many segments readers take when each opens a batch."""
    return _moved(group, readers)[0]


def released(group: Group, *readers: Reader) -> int:
    """Return how many segments readers give up when each opens a batch."""
    return _moved(group, readers)[1]


def _moved(group: Group, readers: Sequence[Reader]) -> tuple[int, int]:
    taken = given_up = 0
    for reader in readers:
        before = set(group.owned(reader.reader_id))
        reader.open()
        after = set(group.owned(reader.reader_id))
        taken += len(after - before)
        given_up += len(before - after)
    return taken, given_up


def read_to(reader: Reader, budget: int) -> None:
    """Read one batch of so many events, and commit it."""
    reader.commit(reader.must_open(budget))


def barrier(group: Group, name: str) -> Any:
    return checkpoint(group.database, group.name, name=name, barrier=True)


def cut_of(group: Group, name: str, lane: Lane | None = None) -> dict[str, int]:
    """Return the cut of a stream in a checkpoint, by the numbers of segments."""
    [row] = group.rows("SELECT cuts FROM checkpoint WHERE group_id = :g AND name = :n", n=name)
    cut = row.cuts[str((lane or group.lanes[0]).stream_id)]
    return {segment.split(".")[0]: offset for segment, offset in cut.items()}
