"""Compare the holes that are declared with the offsets that files have."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pyarrow import fs

from weir.annex.verification.files import DAMAGED
from weir.annex.verification.recorded import Damage, File
from weir.installation.opened import Installation
from weir.model.schema import OFFSET
from weir.queries.annex.verification import holes as sql
from weir.warehouse.filesystem import filesystem

_THREADS = 8  # that wait for files
Offsets = npt.NDArray[np.int64]


def wrong_holes(app: Installation, stream_id: int, files: Sequence[File]) -> list[Damage]:
    """Return the files of a stream whose offsets without a row are not the holes that are declared.

    Only files are read of which a hole is declared or recorded, and only their offsets.
    """
    rows = app.database.transaction(
        lambda c: sql.declared(
            c, stream_id=stream_id, segments=[file.segment_id for file in files],
            firsts=[file.start_offset for file in files], ends=[file.end for file in files],
        )
    )  # fmt: skip
    declared = {i: list(part) for i, part in groupby(rows, lambda row: row.i)}
    asked = [
        (file, declared.get(i, []))
        for i, file in enumerate(files, 1)
        if file.erased or i in declared
    ]
    if not asked:
        return []
    system, base = filesystem(app.settings.warehouse)
    with ThreadPoolExecutor(_THREADS) as pool:
        said = list(pool.map(lambda one: _wrong(system, base, *one), asked))
    return [
        Damage("holes", file.path, what, file.segment_id, file.start_offset, file.events)
        for (file, _), what in zip(asked, said, strict=True)
        if what
    ]


def _wrong(system: fs.FileSystem, base: str, file: File, declared: Sequence[sql.Declared]) -> str:
    """Return in what the offsets of a file differ from the holes; empty if in nothing, or if it
    can't be read, which others say."""
    every = np.arange(file.start_offset, file.end)
    try:
        with system.open_input_file(f"{base}/{file.path}") as source:
            parquet = pq.ParquetFile(source)
            has = OFFSET in parquet.schema_arrow.names
            found = parquet.read([OFFSET])[OFFSET].to_numpy() if has else every
    except DAMAGED:
        return ""
    if len(found) and (
        np.any(np.diff(found) <= 0) or found[0] < file.start_offset or found[-1] >= file.end
    ):
        return "its offsets are not those of its place, or not in order"
    missing = np.setdiff1d(every, found)
    holes = (
        np.concatenate([np.arange(row.first, row.past) for row in declared])
        if declared else every[:0]
    )  # fmt: skip
    if len(more := np.setdiff1d(missing, holes)):
        return f"it has no row at offset {more[0]:,}, and no hole is declared there"
    if len(more := np.setdiff1d(holes, missing)):
        return f"a hole is declared at offset {more[0]:,}, where it has a row"
    return "holes are declared twice" if len(holes) > len(missing) else ""
