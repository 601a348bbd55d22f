"""Read streams natively: Spark scans exactly the files that the metadata names.

`_segment`, `_offset` and `_clock` are computed from constants per file
(`weir.spark.reads.data_files`). There is no join, no shuffle, and no sort except for the order that
was asked for (`weir.spark.reads.tasks`).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from weir.controller.read_plan import Slices
from weir.model.schema import CLOCK, CLOCK_FIELD, OFFSET, OFFSET_FIELD, SEQ, STREAM, Field
from weir.spark.base.ordered_frames import all_of, one_after_another
from weir.spark.base.session import resolving_session
from weir.spark.reads.data_files import NAME, ROW, FileConstants, scan_files
from weir.spark.reads.tasks import WHOLE, Task

_PARTS = "spark.sql.files.minPartitionNum"
READING_TASK, _SORT = "_weir_reading_task", "_weir_sort"
_FOLDER, _NAME = "_weir_folder", "_weir_name"
# Of tasks by clock: the last task that reads a file, the clock that is stored with a row, and what
# comes before the sort number.
_LAST_TASK, _STORED = "_weir_last_task", "_weir_stored_clock"
_SORT_CLOCK, _SORT_STREAM = "_weir_sort_clock", "_weir_sort_stream"
_BY_CLOCK = (_LAST_TASK, _STORED, _SORT_CLOCK, _SORT_STREAM)


class Scan(NamedTuple):
    """The rows of a native scan; none if each task reads one file. If tasks share a folder: the
    folder and the name of each file, and by task the rows of the one file that it reads."""

    frame: DataFrame | None
    files: list[tuple[int, str]]
    alone: dict[int, DataFrame]

    @property
    def rows(self) -> DataFrame:
        """The rows of a scan that is made."""
        assert self.frame is not None, "each task reads a file alone"
        return self.frame


def scanning_session(spark: SparkSession, parts: int = 0) -> SparkSession:
    """Return the private session in which scans are resolved that Spark divides into so many parts
    or more, unless `spark` has a setting for that. 0: Spark decides."""
    # Beyond 32 paths Spark lists files in a job, which costs more than it saves here.
    settings = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100000"}
    if parts and spark.conf.get(_PARTS, None) is None:
        settings[_PARTS] = str(parts)
    return resolving_session(spark, settings)


def scan_of(
    resolving: SparkSession,
    warehouse: str,
    read: Slices,
    fields: Sequence[Field],
    more: Sequence[str],
    number: int,
    tasks: Sequence[Sequence[Task]],
    *,
    by_rank: bool,
) -> Scan:
    """Return the rows of one native scan with the columns `fields` and `more`. With `tasks`, the
    rows also have their task and their sort number in it: that of their file plus their rank
    (`by_rank`), or plus their number in the file.

    `number`: of the stream in the tasks.
    """
    slices = read.slices
    constants = FileConstants([(s.path, s.first_seq) for s in slices])
    first_task, last_task, added = [-1] * len(slices), [0] * len(slices), [0] * len(slices)
    for i, task in enumerate(tasks):
        for part in task:
            if part.stream == number:
                for file, at in part.slices.items():
                    first_task[file] = i if first_task[file] < 0 else first_task[file]
                    last_task[file], added[file] = i, at
    apart = not (constants.by_folder(first_task) and constants.by_folder(last_task))
    alone: dict[int, DataFrame] = {}
    if apart:
        # To look at the name of each row's file takes longer than to plan another scan, as files
        # that share a folder are large.
        for i, task in enumerate(tasks):
            read_here = [(part.stream, len(part.slices)) for part in task]
            if read_here == [(number, 1)] and task[0].clocks in (None, WHOLE):
                one = read._replace(slices=[slices[file] for file in task[0].slices])
                alone[i] = scan_of(
                    resolving, warehouse, one, fields, more, 0, [[Task(0, {0: 0})]],
                    by_rank=by_rank,
                ).rows  # fmt: skip
        if all(i in alone or number not in {part.stream for part in task}
               for i, task in enumerate(tasks)):  # fmt: skip
            return Scan(None, [], alone)
    by_clock = any(part.clocks for task in tasks for part in task)
    # The number of a row in its file is a column of the scan, less a number of the file. Where
    # ranks have no gaps, as in one segment, they cost less than row numbers, and mostly all files
    # of a folder have the same distance from rank to offset.
    row, less = ROW, [0] * len(slices)
    if all(
        s.last_seq - s.first_seq == s.events - 1 and not s.compacted and not s.sparse
        for s in slices
    ):
        row, less = SEQ, [s.first_seq for s in slices]
    sparse = any(s.sparse for s in slices)
    metadata = [*([ROW] if row == ROW else []), *([NAME] if apart else [])]
    paths = [s.path for s in slices]
    cut = [s for s in slices if s.compacted and not s.whole]
    stored = bool(cut) or any(s.first_clock < s.last_clock for s in slices)
    # With the clock of each row, which files of one commit do not have.
    more_fields = [*fields, *([CLOCK_FIELD] if stored else []), *([OFFSET_FIELD] if sparse else [])]
    frame = scan_files(resolving, warehouse, read.stream_id, more_fields, paths, metadata)
    frame = constants.numbered(frame)
    if sparse:  # where events were erased, the offset of a row says what its number was
        start = constants.sql([s.start_offset for s in slices])
        was = f"coalesce({OFFSET} - {start}, {ROW})"
        frame = frame.selectExpr(f"* EXCEPT ({ROW}, {OFFSET})", f"{was} AS {ROW}")

    def plus_row(values: Iterable[int]) -> str:
        from_rank = [value - n for value, n in zip(values, less, strict=True)]
        return f"{constants.sql(from_rank)} + {row}"

    if not all(s.whole for s in slices):
        first = constants.sql([s.first_row + n for s, n in zip(slices, less, strict=True)])
        past = constants.sql([s.end_row + n for s, n in zip(slices, less, strict=True)])
        frame = frame.where(f"{row} >= {first} AND {row} < {past}")
    if cut:  # Spark leaves out row groups by their clocks, which it can't by the number of the row
        low, high = min(s.first_clock for s in slices), max(s.last_clock for s in slices)
        frame = frame.where(f"{CLOCK} IS NULL OR {CLOCK} >= {low} AND {CLOCK} <= {high}")
    clock = constants.sql([s.first_clock for s in slices])
    # If all files have the same segment or commit, the constant needs no array.
    known = {
        STREAM: "'" + read.name + "'",
        "_segment": constants.sql([s.segment_id for s in slices]),
        "_offset": plus_row(s.start_offset for s in slices),
        "_clock": f"coalesce({CLOCK}, {clock})" if stored else clock,
        SEQ: SEQ,
    }
    columns = {name: known[name] for name in more}
    files: list[tuple[int, str]] = []
    if tasks:
        columns[READING_TASK] = constants.sql(first_task)
        columns[_SORT] = f"{constants.sql(added)} + {SEQ}" if by_rank else plus_row(added)
        if by_clock:
            columns[_LAST_TASK] = constants.sql(last_task)
            columns[_STORED] = CLOCK if stored else "cast(NULL AS bigint)"
            columns[_SORT_CLOCK], columns[_SORT_STREAM] = known["_clock"], str(number)
        if apart:
            columns[_FOLDER], columns[_NAME] = constants.folder, NAME
            names = (s.path.rsplit("/", 1)[1] for s in slices)
            files = list(zip(constants.folders, names, strict=True))
    frame = frame.selectExpr(
        f"* EXCEPT ({', '.join([*constants.added, *metadata, *([CLOCK] if stored else [])])})",
        *(f"{sql} AS {name}" for name, sql in columns.items()),
    )
    return Scan(frame, files, alone)


def in_tasks(scans: Sequence[Scan], tasks: Sequence[Sequence[Task]]) -> DataFrame:
    """Return the rows of scans task by task, in each task by their sort numbers.

    The files of a task follow from the names of folders and files, so Spark finds them in its plan,
    and does not read the others. Spark may divide a task of one file, at its row groups.
    """
    frames = []
    by_clock = any(part.clocks for task in tasks for part in task)
    for i, task in enumerate(tasks):
        frame = all_of([_part_of(scans[part.stream], i, part) for part in task])
        if sum(len(part.slices) for part in task) > 1:
            keys = [_SORT_CLOCK, _SORT_STREAM, _SORT] if task[0].clocks else [_SORT]
            frame = frame.coalesce(1).sortWithinPartitions(*keys)
        frames.append(frame.drop(*_BY_CLOCK) if by_clock else frame)
    return one_after_another(frames).selectExpr(f"* EXCEPT ({READING_TASK}, {_SORT})")


def _part_of(scan: Scan, i: int, part: Task) -> DataFrame:
    """Return what a task reads of a scan."""
    if i in scan.alone:
        return scan.alone[i]
    frame, files = scan.rows, scan.files
    mine = f"{READING_TASK} = {i}"
    if part.clocks:
        mine = f"{READING_TASK} <= {i} AND {_LAST_TASK} >= {i}"
    if part.clocks not in (None, WHOLE):  # a file of one commit is in one task
        low, past = part.clocks
        frame = frame.where(f"{_STORED} IS NULL OR {_STORED} >= {low} AND {_STORED} < {past}")
    if not files:
        return frame.where(mine)
    wanted = {files[file] for file in part.slices}
    folders, names = {folder for folder, _ in wanted}, {name for _, name in wanted}
    listed = ", ".join(f"'{name}'" for name in sorted(names))
    frame = frame.where(f"{_FOLDER} IN ({', '.join(map(str, sorted(folders)))})")
    frame = frame.where(f"{_NAME} IN ({listed})")
    if len(folders) > 1 and any(
        folder in folders and name in names and (folder, name) not in wanted
        for folder, name in files
    ):  # Spark gives files of several folders the same name
        frame = frame.where(mine)
    return frame.drop(_FOLDER, _NAME)
