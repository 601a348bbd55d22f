"""How the files of a read are divided among tasks, by the rules alone: no Spark is started."""

import random
from collections.abc import Callable, Sequence

import pytest

from tests.chance import cases, random_for
from weir.controller.read_plan import FileSlice
from weir.spark.reads.tasks import Task, tasks_by_segment, tasks_in_write_order

Row = tuple[int, int, int, int]  # stream, clock, segment, offset


def files(made: random.Random, commits: int, segments: int, most: int) -> list[FileSlice]:
    """Files of commits to segments that tile the keys, of which some are read in part. In half of
    the commits the ranks of different segments interleave, as those of one task do."""
    found: list[FileSlice] = []
    offsets = [0] * segments
    for clock in range(commits):
        rank, together = 0, made.random() < 0.5
        for _ in range(made.randint(1, 3)):
            first = rank
            for segment in range(segments):
                events = made.choice([1, made.randint(1, most), most])
                step = segments if together else 1
                low = first + segment if together else rank
                last = low + (events - 1) * step
                rank = max(rank, last + 1)
                whole = made.random() < 0.8
                begin = 0 if whole else made.randrange(events)
                end = events if whole else made.randint(begin + 1, events)
                found.append(
                    FileSlice(
                        f"{len(found)}", segment, segment / segments, (segment + 1) / segments,
                        offsets[segment], events, low, last, clock, clock, False, begin, end,
                        0, False,
                    )
                )  # fmt: skip
                offsets[segment] += events
    return sorted(found, key=lambda s: (s.segment_id, s.start_offset))


def rows(
    streams: Sequence[Sequence[FileSlice]],
    tasks: Sequence[Sequence[Task]],
    in_file: Callable[[FileSlice, int], int],
) -> list[list[Row]]:
    """What the tasks read, by the sort numbers of the rows, which are different in a task."""
    read = []
    for task in tasks:
        found: dict[int, Row] = {}
        for part in task:
            for i, added in part.slices.items():
                s = streams[part.stream][i]
                for row in range(s.first_row, s.end_row):
                    number = added + in_file(s, row)
                    assert number not in found
                    found[number] = (part.stream, s.first_clock, s.segment_id, s.start_offset + row)
        read.append([found[number] for number in sorted(found)])
    return read


def rank(s: FileSlice, row: int) -> int:
    """The rank of a row, as `files` gives them."""
    return s.first_seq + (row * ((s.last_seq - s.first_seq) // (s.events - 1)) if row else 0)


@pytest.mark.parametrize("large", [5, 30, 1_000])
def test_tasks_read_each_row_once_and_in_order_whatever_the_files(
    large: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("weir.spark.reads.tasks._LARGE", large)
    made = random_for(f"tasks {large}")
    for _ in range(cases(400)):
        cores, segments = made.choice([1, 2, 8]), made.choice([1, 1, 3, 16])
        streams = [
            files(made, made.randint(1, 6), segments, made.choice([3, 40]))
            for _ in range(made.choice([1, 1, 3]))
        ]
        everything = sorted(
            (s.first_clock, stream, rank(s, row), s.segment_id, s.start_offset + row)
            for stream, slices in enumerate(streams)
            for s in slices
            for row in range(s.first_row, s.end_row)
        )
        by_rank = rows(streams, tasks_in_write_order(streams, cores), rank)
        assert [row for task in by_rank for row in task] == [
            (stream, clock, segment, offset) for clock, stream, _, segment, offset in everything
        ]
        by_segment = rows(streams[:1], tasks_by_segment(streams[0], cores), lambda s, row: row)
        read = [(segment, offset) for task in by_segment for _, _, segment, offset in task]
        assert sorted(read) == sorted((s.segment_id, s.start_offset + row) for s in streams[0]
                                      for row in range(s.first_row, s.end_row))  # fmt: skip
        for segment in range(segments):
            offsets = [offset for one, offset in read if one == segment]
            assert offsets == sorted(offsets)
            inside = [i for i, task in enumerate(by_segment) if any(r[2] == segment for r in task)]
            assert inside == list(range(inside[0], inside[0] + len(inside))), "one after another"
            if len(offsets) <= max(large, len(read) // cores):
                assert len(inside) == 1, "a segment of a core's share is one task"


def test_a_large_segment_has_a_task_for_each_large_file_and_each_core() -> None:
    def one_segment(count: int, events: int) -> list[FileSlice]:
        return [
            FileSlice(str(i), 0, 0.0, 1.0, i * events, events, i * events, (i + 1) * events - 1,
                      7, 7, False, 0, events, 0, False)
            for i in range(count)
        ]  # fmt: skip

    for plan in (tasks_by_segment, lambda s, cores: tasks_in_write_order([s], cores)):
        assert len(plan(one_segment(6, 1_000_000), 2)) == 6
        many = plan(one_segment(1_000, 10_000), 4)
        assert 4 <= len(many) <= 17, "small files share tasks"
        assert len(plan(one_segment(5_000, 1_000_000), 4)) <= 17, "so do very many large ones"
    assert len(tasks_by_segment(one_segment(50, 1_000), 4)) == 1, "a small batch is one task"


def compacted(
    made: random.Random, slices: Sequence[FileSlice]
) -> tuple[list[FileSlice], dict[str, list[tuple[int, int]]]]:
    """Put neighbours of a segment together at random. Returns the files, and by path the clock and
    the rank of each row."""
    found: list[FileSlice] = []
    inside: dict[str, list[tuple[int, int]]] = {}
    for s in slices:
        step = max(1, (s.last_seq - s.first_seq) // max(1, s.events - 1))
        ranks = [(s.first_clock, s.first_seq + i * step) for i in range(s.events)]
        last = found[-1] if found else None
        joins = last and last.segment_id == s.segment_id and last.end_row == last.events
        if last and joins and s.first_row == 0 and made.random() < 0.7:
            inside[last.path] += ranks
            several = last.compacted or last.last_clock < s.first_clock
            found[-1] = last._replace(
                events=last.events + s.events, end_row=last.events + s.end_row,
                first_seq=min(last.first_seq, s.first_seq), last_seq=max(last.last_seq, s.last_seq),
                last_clock=s.first_clock, compacted=several,
            )  # fmt: skip
        else:
            inside[s.path] = ranks
            found.append(s)
    return found, inside


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(400)))
def test_compacted_files_are_divided_by_clocks_and_read_once_in_write_order(case: int) -> None:
    made = random_for("compacted tasks", case)
    streams, insides = [], []
    for _ in range(made.randint(1, 3)):
        slices = files(made, made.randint(1, 8), made.randint(1, 4), made.choice([2, 9, 60]))
        slices, inside = compacted(made, slices)
        streams.append(slices)
        insides.append(inside)
    cores = made.randint(1, 4)
    found = tasks_in_write_order(streams, cores)
    every = sorted(
        (clock, stream, rank, s.segment_id)
        for stream, slices in enumerate(streams)
        for s in slices
        for clock, rank in insides[stream][s.path][s.first_row : s.end_row]
    )
    read: list[tuple[int, int, int, int]] = []
    for task in found:
        rows_here: list[tuple[tuple[int, ...], tuple[int, int, int, int]]] = []
        for part in task:
            for i, added in part.slices.items():
                s = streams[part.stream][i]
                for clock, rank in insides[part.stream][s.path][s.first_row : s.end_row]:
                    row = (clock, part.stream, rank, s.segment_id)
                    if part.clocks is None:
                        assert s.first_clock == s.last_clock or len(part.slices) == len(task) == 1
                        rows_here.append(((added + rank,), row))
                    elif part.clocks[0] <= clock < part.clocks[1]:
                        rows_here.append(((clock, part.stream, rank), row))
        many = sum(len(part.slices) for part in task) > 1
        if many:  # a single file is in order
            rows_here.sort()
        read += [row for _, row in rows_here]
    assert read == every


def test_files_of_the_same_time_are_divided_into_equal_tasks() -> None:
    slices = [
        FileSlice(str(i), i, i / 16, (i + 1) / 16, 0, 100_000, 0, 99, 1_000, 2_000, True, 0,
                  100_000, 0, False)
        for i in range(16)
    ]  # fmt: skip
    found = tasks_in_write_order([slices], 4)
    assert len(found) == 16
    ranges = [task[0].clocks or (0, 0) for task in found]
    widths = [min(past, 2_001) - max(low, 1_000) for low, past in ranges]
    assert max(widths) <= min(widths) + 2
