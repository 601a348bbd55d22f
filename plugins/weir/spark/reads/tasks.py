"""Divide the files of a read among tasks, and give each row its sort number.

The sort number of a row is one number per file plus the row's number in the file or its rank. So a
task sorts by a single long, which Spark does by radix, however many segments and commits it reads.
A task of one file sorts nothing, because a file is in order; so a large file is a task of its own,
where the order allows it.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weir.controller.read_plan import FileSlice

TASKS_PER_CORE = 4
# To plan one more task takes as long as to sort so many rows.
_LARGE = 100_000
_MOST_LARGE = 256  # files with tasks of their own
_MOST_NUMBERS = 1 << 62  # in a task of several groups of ranks


class Task(NamedTuple):
    """What a task reads of one of the streams: per number of a slice what is added to the number or
    rank of a row to give its sort number."""

    stream: int
    slices: dict[int, int]


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
    for stream, files in _together(streams):
        group = [streams[stream][i] for i in files]
        low = min(s.first_seq for s in group)
        ranks = 1 + max(s.last_seq for s in group) - low
        length = sum(s.end_row - s.first_row for s in group)
        alone = len(files) == 1 and length >= large
        if room <= 0 or alone or next_number + ranks > _MOST_NUMBERS:
            tasks.append([])
            room, next_number = wanted, 0
        of_stream = next((task for task in tasks[-1] if task.stream == stream), None)
        if of_stream is None:
            of_stream = Task(stream, {})
            tasks[-1].append(of_stream)
        of_stream.slices.update(dict.fromkeys(files, next_number - low))
        room = 0 if alone else room - length
        next_number += ranks
    return tasks


def _together(streams: Sequence[Sequence[FileSlice]]) -> Iterator[tuple[int, list[int]]]:
    """Return in write order the smallest groups of files whose ranks do not lie between those of
    another group: the stream, and the numbers of its slices."""
    ordered = sorted(
        (s.clock, stream, s.first_seq, s.last_seq, i)
        for stream, slices in enumerate(streams)
        for i, s in enumerate(slices)
    )
    files: list[int] = []
    last = (-1, -1, -1)  # the clock, the stream, and its highest rank so far
    for clock, stream, first, highest, i in ordered:
        if files and (clock, stream, first) > last:
            yield last[1], files
            files = []
        files.append(i)
        last = max(last, (clock, stream, highest))
    if files:
        yield last[1], files


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
