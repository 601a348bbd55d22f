"""Divide the files of a read among tasks, and give each row its sort number.

The sort number of a row is one number per file plus the row's number in the file or its rank. So a
task sorts by a single long, which Spark does by radix, however many segments and commits it reads.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from weir.controller.read_plan import FileSlice

_MOST_NUMBERS = 1 << 62  # in a task of several groups of ranks


class Task(NamedTuple):
    """What a task reads of one of the streams: per number of a slice what is added to the number or
    rank of a row to give its sort number."""

    stream: int
    slices: dict[int, int]


def tasks_by_segment(slices: Sequence[FileSlice], most: int) -> list[list[Task]]:
    """Divide the slices of one stream into at most `most` tasks of whole segments, with about equal
    numbers of events. Segments that follow one another are in one task, predecessors first.

    The sort number of a row is its number in the file plus that of the file.
    """
    number = {s: i for i, s in enumerate(slices)}
    tasks = []
    for part in _pack(chains_of(slices), most):
        of_file, next_number = {}, 0
        for s in sorted(part, key=lambda s: (s.segment_id, s.start_offset)):
            of_file[number[s]] = next_number - s.first_row
            next_number += s.end_row - s.first_row
        tasks.append([Task(0, of_file)])
    return tasks


def tasks_in_write_order(streams: Sequence[Sequence[FileSlice]], most: int) -> list[list[Task]]:
    """Divide the slices of streams into about `most` tasks, one after the other in write order: by
    clock, then by stream, then by rank. A task has one entry for each stream that it reads.

    The sort number of a row is its rank plus that of the file.
    """
    wanted = max(1, sum(s.events for slices in streams for s in slices) // most)
    tasks: list[list[Task]] = []
    events = next_number = 0  # of the last task, and the number after its rows
    for stream, files in _together(streams):
        low = min(streams[stream][i].first_seq for i in files)
        ranks = 1 + max(streams[stream][i].last_seq for i in files) - low
        if not tasks or events >= wanted or next_number + ranks > _MOST_NUMBERS:
            tasks.append([])
            events = next_number = 0
        of_stream = next((task for task in tasks[-1] if task.stream == stream), None)
        if of_stream is None:
            of_stream = Task(stream, {})
            tasks[-1].append(of_stream)
        of_stream.slices.update(dict.fromkeys(files, next_number - low))
        events += sum(streams[stream][i].events for i in files)
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
