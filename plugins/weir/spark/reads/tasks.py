"""Divide the files of a read among tasks, and give each row its sort number.

The sort number of a row is one number per file plus the row's number in the file or its rank. So a
task sorts by a single long, which Spark does by radix, however many segments and commits it reads.
A task of one file sorts nothing, because a file is in order; so a large file is a task of its own,
where the order allows it. All tasks share one scan, filtered by the number of the task: a scan for
each would be planned, and list its files, again and again.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from weir.controller.read_plan import FileSlice

TASKS_PER_CORE = 4
# To plan one more task takes as long as to sort so many rows.
_LARGE = 100_000
_MOST_LARGE = 256  # files with tasks of their own
_MOST_NUMBERS = 1 << 62  # in a task of several groups of ranks


WHOLE = (0, 1 << 63)  # all clocks


class Task(NamedTuple):
    """What a task reads of one of the streams: per number of a slice what is added to the number or
    rank of a row to give its sort number.

    `clocks`: the task sorts by clock, stream and rank, and reads what has a clock from the first
    one up to the second, because files of several commits follow one another in no other order.
    """

    stream: int
    slices: dict[int, int]
    clocks: tuple[int, int] | None = None


def tasks_by_segment(slices: Sequence[FileSlice], cores: int) -> list[list[Task]]:
    """Divide the slices of one stream into a few tasks per core, with about equal numbers of
    events.

    The events of a segment, and of the segments that follow it, are in one task, predecessors
    first. If they are large and more than a core's share, they are in several tasks that follow one
    another.

    The sort number of a row is its number in the file plus that of the file.
    """
    number = {s: i for i, s in enumerate(slices)}
    rows = sum(s.end_row - s.first_row for s in slices)
    large = _large(rows)
    whole, parts = [], []
    for chain in chains_of(slices):
        chain.sort(key=lambda s: (s.segment_id, s.start_offset))
        length = sum(s.end_row - s.first_row for s in chain)
        if length > max(large, rows // cores):
            parts += _divided(chain, large, max(large, rows // (TASKS_PER_CORE * cores)))
        else:
            whole.append(chain)
    tasks = []
    for part in _pack(whole, TASKS_PER_CORE * cores) + parts:
        of_file, next_number = {}, 0
        for s in sorted(part, key=lambda s: (s.segment_id, s.start_offset)):
            of_file[number[s]] = next_number - s.first_row
            next_number += s.end_row - s.first_row
        tasks.append([Task(0, of_file)])
    return tasks


def _large(rows: int) -> int:
    """Return how many rows make a file of a read of `rows` worth a task of its own."""
    return max(_LARGE, rows // _MOST_LARGE)


def parts_of_scans(tasks: Sequence[Sequence[Task]], slices: Sequence[FileSlice], cores: int) -> int:
    """Return into how many parts Spark shall divide each scan at least, or 0 if it decides: into
    one for each core, of few files uneven ones, and of a file with one row group empty ones."""
    if tasks:
        return 1 if len(tasks) >= cores else 0
    parts = TASKS_PER_CORE * cores
    return parts if sum(s.end_row - s.first_row for s in slices) >= parts * _LARGE else 0


def _divided(chain: Sequence[FileSlice], large: int, wanted: int) -> list[list[FileSlice]]:
    """Divide slices, in their order, into parts of about `wanted` rows; large files are alone."""
    parts: list[list[FileSlice]] = []
    room = 0
    for s in chain:
        rows = s.end_row - s.first_row
        if room <= 0 or rows >= large:
            parts.append([])
            room = wanted
        parts[-1].append(s)
        room = 0 if rows >= large else room - rows
    return parts


def tasks_in_write_order(streams: Sequence[Sequence[FileSlice]], cores: int) -> list[list[Task]]:
    """Divide the slices of streams into a few tasks per core, one after the other in write order:
    by clock, then by stream, then by rank. A task has one entry for each stream that it reads.

    The sort number of a row is its rank plus that of the file.
    """
    rows = sum(s.end_row - s.first_row for slices in streams for s in slices)
    wanted = max(1, rows // (TASKS_PER_CORE * cores))
    large = _large(rows)
    tasks: list[list[Task]] = []
    next_number = 0  # after the rows of the last task
    room = 0  # for rows in the last task
    for group in _together(streams):
        found = [streams[stream][i] for stream, i in group]
        length = sum(s.end_row - s.first_row for s in found)
        alone = len(group) == 1 and length >= large
        clocks = WHOLE if any(s.first_clock < s.last_clock for s in found) else None
        if clocks and not alone and length > 2 * wanted:
            tasks += _by_clock(streams, group, -(-length // wanted))
            room = 0
            continue
        low = min(s.first_seq for s in found)
        ranks = 1 + max(s.last_seq for s in found) - low
        ends = clocks and not (tasks and tasks[-1][0].clocks)
        if room <= 0 or alone or ends or next_number + ranks > _MOST_NUMBERS:
            tasks.append([])
            room, next_number = wanted, 0
        clocks = clocks or (tasks[-1][0].clocks if tasks[-1] else None)
        for stream, i in group:
            _task_of(tasks[-1], stream, clocks).slices[i] = 0 if clocks else next_number - low
        room = 0 if alone else room - length
        next_number += 0 if clocks else ranks
    return tasks


def _task_of(task: list[Task], stream: int, clocks: tuple[int, int] | None) -> Task:
    """Return the entry of a stream in a task, which is made if it is not there."""
    for one in task:
        if one.stream == stream:
            return one
    task.append(Task(stream, {}, clocks))
    return task[-1]


def _by_clock(
    streams: Sequence[Sequence[FileSlice]], group: Sequence[tuple[int, int]], parts: int
) -> list[list[Task]]:
    """Divide files into tasks by the clocks of their rows, with about as many rows each if those of
    a file are spread evenly over the time from its first to its last."""
    bounds = _clocks_between([streams[stream][i] for stream, i in group], parts)
    ranges = list(pairwise([WHOLE[0], *bounds, WHOLE[1]]))
    tasks: list[list[Task]] = [[] for _ in ranges]
    for stream, i in group:
        s = streams[stream][i]
        for n in range(bisect_right(bounds, s.first_clock), bisect_right(bounds, s.last_clock) + 1):
            _task_of(tasks[n], stream, ranges[n]).slices[i] = 0
    return [task for task in tasks if task]


def _clocks_between(slices: Sequence[FileSlice], parts: int) -> list[int]:
    """Return the clocks at which parts begin, but the first, with about as many rows each."""
    steeper: dict[int, float] = defaultdict(float)  # by how much more rows per clock from there on
    at_once: dict[int, int] = defaultdict(int)  # rows of one clock
    for s in slices:
        rows = s.end_row - s.first_row
        if s.first_clock == s.last_clock:
            at_once[s.first_clock] += rows
        else:
            steeper[s.first_clock] += rows / (s.last_clock - s.first_clock)
            steeper[s.last_clock] -= rows / (s.last_clock - s.first_clock)
    each = sum(s.end_row - s.first_row for s in slices) / parts
    found: list[int] = []
    before, rate, last = 0.0, 0.0, 0
    for clock in sorted({*steeper, *at_once}):
        after = before + rate * (clock - last)
        while rate > 0 and len(found) + 1 < parts and after >= each * (len(found) + 1):
            found.append(clock - int((after - each * (len(found) + 1)) / rate))
        before, last = after + at_once[clock], clock
        while len(found) + 1 < parts and before >= each * (len(found) + 1):
            found.append(clock + 1)
        rate += steeper[clock]
    return sorted(set(found))


def _together(streams: Sequence[Sequence[FileSlice]]) -> Iterator[list[tuple[int, int]]]:
    """Return in write order the smallest groups of files of which none lies between the rows of
    another group: streams, and numbers of their slices."""
    ordered = sorted(
        ((s.first_clock, stream, s.first_seq), (s.last_clock, stream, s.last_seq), i)
        for stream, slices in enumerate(streams)
        for i, s in enumerate(slices)
    )
    group: list[tuple[int, int]] = []
    last = (-1, -1, -1)  # the clock, the stream and the rank of the last row so far
    for first, highest, i in ordered:
        if group and first > last:
            yield group
            group = []
        group.append((first[1], i))
        last = max(last, highest)
    if group:
        yield group


def chains_of(slices: Sequence[FileSlice]) -> list[list[FileSlice]]:
    """Group slices by segment. Segments whose key ranges overlap follow one another and are in one
    group."""
    chains: list[list[FileSlice]] = []
    keys_end = 0.0  # the end of the last group's keys
    for s in sorted(slices, key=lambda s: s.key_low):
        if not chains or s.key_low >= keys_end:
            chains.append([])
        chains[-1].append(s)
        keys_end = max(keys_end, s.key_high)
    return chains


def _pack(units: list[list[FileSlice]], parts: int) -> list[list[FileSlice]]:
    """Divide whole units into at most `parts` groups with about equal numbers of events."""
    groups: list[list[FileSlice]] = [[] for _ in range(min(parts, len(units)))]
    events = [0] * len(groups)
    for size, unit in sorted(((sum(s.events for s in u), u) for u in units), key=lambda u: -u[0]):
        least = events.index(min(events))
        events[least] += size
        groups[least] += unit
    return groups
