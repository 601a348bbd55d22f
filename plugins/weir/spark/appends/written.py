"""What an attempt has written: the footers of its files, and the hashes of their rows."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import lru_cache

from pyarrow import fs
from pyspark.sql import Column
from pyspark.sql import functions as F

from weir.errors import InvariantViolation
from weir.kernel.attempt import Attempt, StagedFile
from weir.kernel.event_time import TimeColumn, range_in_footer, range_of, times_in
from weir.model.schema import SEQ
from weir.spark.base.row_hash import sums_modulo
from weir.warehouse.filesystem import filesystem
from weir.warehouse.footer import read_footer
from weir.warehouse.paths import REJECTED_SEGMENT, SEGMENT, TASK

HASH = "_weir_hash"  # a column on the way
# With more segments the sums of all of them, of which each row changes one, would cost too much.
MOST_DIGESTS = 32
_PART = re.compile(r"/part-[^/]*(\.c[0-9]+\.)[^/]*$")
_FILE = re.compile(rf"{SEGMENT}=(-?[0-9]+)/{TASK}=[0-9]+/[^/]+\.parquet$")


def read_footers(warehouse: str, folder: str, time: TimeColumn | None = None) -> list[StagedFile]:
    """Return the Parquet files below an attempt's folder, with the ranges of their event times if
    they have a column `time`. Their footers are read once, in parallel."""
    system, base = filesystem(warehouse)
    infos = system.get_file_info(
        fs.FileSelector(f"{base}/{folder}".rstrip("/"), allow_not_found=True, recursive=True)
    )

    def read(info: fs.FileInfo) -> StagedFile | None:
        match = _FILE.search(info.path)
        if match is None:
            return None
        with system.open_input_file(info.path) as source:
            footer, end_hash = read_footer(source, info.size)
        if footer.num_rows == 0:
            return None
        # By their paths, because a nested field may have the same name.
        leaves = range(footer.num_columns)
        column = next(i for i in leaves if footer.schema.column(i).path == SEQ)
        statistics = [
            footer.row_group(i).column(column).statistics for i in range(footer.num_row_groups)
        ]
        segment_id, path = int(match[1]), info.path[len(base) + 1 :]
        found = StagedFile(
            segment_id, path, footer.num_rows, info.size, min(s.min for s in statistics),
            max(s.max for s in statistics), end_hash=end_hash,
        )  # fmt: skip
        if time is None or segment_id == REJECTED_SEGMENT:
            return found
        times = range_in_footer(footer, time) or range_of(times_in(warehouse, path, time))
        return replace(found, min_time=times.low, max_time=times.high, untimed=times.untimed)

    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(read, [i for i in infos if i.type == fs.FileType.File]))
    return [file for file in found if file is not None]


def check_folders(attempt: Attempt, files: Sequence[StagedFile]) -> None:
    """Check that a folder and the number of a file in it identify one file, as readers assume."""
    parts = Counter(_PART.sub(r"\1", file.path) for file in files)
    if parts and (most := parts.most_common(1)[0])[1] > 1:
        raise InvariantViolation(
            "folder_written_twice",
            f"two tasks wrote to folder {most[0]} of stream {attempt.stream}, so nothing was "
            "committed; this is a defect of Weir, please report it.",
        )


@lru_cache(maxsize=64)
def sums_of_hashes(jvm: object, ordinal: str, segments: int) -> list[Column]:
    """Return per segment, by its number in column `ordinal`, the sum of the hashes of its rows,
    modulo 2^64. They are kept for the next append, as each is several questions to the JVM."""
    hashes = [F.expr(f"if({ordinal} = {i}, {HASH}, 0L)") for i in range(segments)]
    return [
        F.coalesce(one, F.lit(0)).alias(f"hashes{i}")
        for i, one in enumerate(sums_modulo(jvm, hashes))
    ]


def with_hashes(files: Sequence[StagedFile], hashes: Mapping[int, int]) -> list[StagedFile]:
    """Return files, the first of each segment with the sum of the hashes of all its rows, and the
    others with none. Those of segments without a sum stay without."""
    left = dict(hashes)
    return [
        replace(file, hashes=left.pop(file.segment_id, 0)) if file.segment_id in hashes else file
        for file in files
    ]
