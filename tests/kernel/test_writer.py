"""Rows become files: whatever the numbers of tasks, segments, files and row groups, the same events
with the same ranks and digests; and what a writer has in memory has a bound."""

import json
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chance import cases, random_for
from tests.digests import TYPES, rows_of_every_type
from tests.spark.xxh64 import xxh64
from weir.kernel import files
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.kernel.row_hash import row_hashes
from weir.kernel.schema import from_arrow
from weir.kernel.stage import Layout
from weir.kernel.writer import TASK_BITS, write_batches
from weir.model.digest import hash_of, signed
from weir.model.names import stream_name
from weir.model.schema import SEQ
from weir.model.segment import Segment
from weir.warehouse.footer import read_footer


def attempt(ends: list[float], **more: Any) -> Attempt:
    """An attempt at a stream whose segments end there. They are numbered in another order."""
    lows = [0.0, *ends[:-1]]
    numbers = [(7 * i + 3) % len(ends) if len(ends) % 7 else i for i in range(len(ends))]
    segments = tuple(map(Segment, numbers, lows, ends))
    return Attempt(
        1, stream_name("test/rows"), 1, 1, segments, "key", "quarantine", "quarantine", 1, None,
        **more,
    )  # fmt: skip


def layout_of(root: Path, one: Attempt, rows: pa.Table, **more: Any) -> Layout:
    return replace(Layout.of(str(root), one, from_arrow(rows.schema)), **more)


def in_parts(random: Random, table: pa.Table, parts: int) -> list[pa.Table]:
    places = sorted(random.randrange(len(table) + 1) for _ in range(parts - 1))
    ends = [0, *places, len(table)]
    return [table.slice(a, b - a) for a, b in pairwise(ends)]


def place_of(key: str) -> float:
    return (xxh64(key.encode()) >> 11) / 2**53


def check_file(root: Path, file: StagedFile, names: list[str]) -> pa.Table:
    """What a file says of itself is what is reported of it."""
    path = root / file.path
    rows = pq.read_table(path, partitioning=None)
    ranks = rows[SEQ].to_pylist()
    assert (file.events, file.bytes) == (len(rows), path.stat().st_size)
    assert (file.first_seq, file.last_seq) == (ranks[0], ranks[-1])
    assert ranks == sorted(set(ranks))
    total = sum(int(row_hashes(one, names).sum()) for one in rows.combine_chunks().to_batches())
    assert file.hashes == signed(total)
    assert file.file_hash == hash_of(path.read_bytes())
    with pa.OSFile(str(path)) as source:
        assert file.end_hash == read_footer(source, file.bytes)[1]
    return rows


@pytest.mark.random
def test_rows_ranks_and_digests_are_the_same_in_any_layout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for case in range(cases(40)):
        random, root = random_for("layout", case), tmp_path / str(case)
        count = random.choice([0, 1, 60, 400])
        keys = [random.choice([None, "", "ä", *map(str, range(30))]) for _ in range(count)]
        rows = rows_of_every_type(random, count).append_column("key", pa.array(keys, pa.string()))
        names = sorted([*TYPES, "key"])
        ends = sorted({random.random() for _ in range(random.choice([0, 2, 90]))} | {1.0})
        one = attempt(ends)
        shape = {"file_rows": random.choice([7, 100, 10_000])}
        shape["group_rows"] = min(shape["file_rows"], random.choice([3, 50, 10_000]))
        monkeypatch.setattr(files, "BUFFERED", random.choice([1_000, 20_000, 1 << 30]))
        monkeypatch.setattr(files, "OPEN", random.choice([1, 64]))
        layout = layout_of(root, one, rows, **shape)
        written, expected = [], []
        for task, part in enumerate(in_parts(random, rows, random.choice([1, 3]))):
            batches = [b for p in in_parts(random, part, random.choice([1, 4]))
                       for b in p.to_batches()]  # fmt: skip
            written.append(write_batches(layout, batches, task))
            ranks = pa.array(range(task << TASK_BITS, (task << TASK_BITS) + len(part)), pa.int64())
            expected.append(part.append_column(SEQ, ranks))
        staged = layout.staged(written)
        staged.check()
        compare(root, one, staged, pa.concat_tables(expected), names, shape)


def compare(
    root: Path,
    one: Attempt,
    staged: Staged,
    expected: pa.Table,
    names: list[str],
    shape: dict[str, int],
) -> None:
    ranges = {segment.segment_id: segment for segment in one.segments}
    parts = [expected.slice(0, 0).select([*names, SEQ])]
    for file in staged.in_order():
        rows, segment = check_file(root, file, names), ranges[file.segment_id]
        assert len(rows) <= shape["file_rows"]
        footer = pq.read_metadata(root / file.path)
        groups = [footer.row_group(i).num_rows for i in range(footer.num_row_groups)]
        assert max(groups) <= shape["group_rows"]
        for key in rows["key"].unique().to_pylist():
            assert segment.key_low <= place_of(key) < segment.key_high, key
        parts.append(rows.select([*names, SEQ]))
    found = pa.concat_tables(parts).sort_by(SEQ)
    has_key = expected["key"].is_valid()
    assert str(found.to_pylist()) == str(expected.filter(has_key).select([*names, SEQ]).to_pylist())
    assert staged.rejected == len(expected) - len(found)
    [*tables] = [pq.read_table(root / f.path, partitioning=None) for f in staged.rejected_files]
    lost = [rank for table in tables for rank in table[SEQ].to_pylist()]
    assert sorted(lost) == expected.filter(expected["key"].is_null())[SEQ].to_pylist()


def test_ranks_and_texts_that_are_repeated_take_little_space(tmp_path: Path) -> None:
    rows = pa.table({
        "key": [f"key {n % 100}" for n in range(40_000)],
        "many": [f"one of 10,000 texts: {n % 10_000}" for n in range(40_000)],
    })  # fmt: skip
    [file] = write_batches(layout_of(tmp_path, attempt([1.0]), rows), rows.to_batches()).files
    group = pq.read_metadata(tmp_path / file.path).row_group(0)
    columns = {group.column(i).path_in_schema: group.column(i) for i in range(group.num_columns)}
    assert columns[SEQ].total_compressed_size < 40_000 / 50
    assert "RLE_DICTIONARY" in columns["key"].encodings, "it has 100 texts"
    assert columns["key"].total_uncompressed_size < 40_000 * 2
    most = columns["many"].total_uncompressed_size
    assert most > 40_000 * 20, "most of its values are written as they are"


_MEMORY = """
import json, resource, sys
import numpy as np
import pyarrow as pa
from pathlib import Path
from tests.kernel.test_writer import attempt, layout_of
from weir.kernel.writer import write_batches

root, segments, rows, size, batch, ordered = Path(sys.argv[1]), *map(int, sys.argv[2:])
random = np.random.default_rng(7)
ends = [(i + 1) / segments for i in range(segments)]

def batches():
    for first in range(0, rows, batch):
        keys = [f"key {n}" for n in range(first, first + batch)]
        texts = [random.bytes(size) for _ in range(batch)] if size else range(first, first + batch)
        yield pa.record_batch({"key": keys, "x": pa.array(texts)})

given = batches()
if ordered:
    from weir.kernel.row_hash import hashes_of_texts
    from weir.kernel.writer import ordinals_of
    table = pa.Table.from_batches(given)
    found = ordinals_of(hashes_of_texts(table["key"].combine_chunks()), [0.0, *ends[:-1]])
    table = table.take(pa.array(np.argsort(found, kind="stable"))).combine_chunks()
    given = table.append_column("_weir_seq", pa.array(range(rows))).to_batches(10_000)
layout = layout_of(root, attempt(ends), pa.table({"key": ["a"], "x": [b"" if size else 1]}))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
written = write_batches(layout, given, by_segment=bool(ordered))
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"grown": (after - before) << 10, "files": [f.path for f in written.files]}))
"""


@pytest.mark.parametrize(
    ("segments", "rows", "size", "batch", "ordered", "least"),
    [
        pytest.param(16, 600, 1 << 20, 20, 0, 4 << 20, id="16 segments, rows of 1 MiB"),
        pytest.param(1_000, 400_000, 0, 10_000, 1, 2_000, id="1,000 segments, sorted before"),
    ],
)
def test_memory_has_a_bound_and_row_groups_a_useful_size(
    tmp_path: Path, segments: int, rows: int, size: int, batch: int, ordered: int, least: int
) -> None:
    given = map(str, (tmp_path, segments, rows, size, batch, ordered))
    done = subprocess.run(
        [sys.executable, "-c", _MEMORY, *given], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    assert found["grown"] < 600 << 20, f"{found['grown'] >> 20} MiB for {rows * size >> 20}"
    footers = [pq.read_metadata(tmp_path / path) for path in found["files"]]
    assert len({Path(path).parts[3] for path in found["files"]}) == segments
    groups = [
        one.row_group(i).total_byte_size for one in footers for i in range(one.num_row_groups)
    ]
    assert np.mean(groups) >= least
    assert sum(one.num_rows for one in footers) == rows
    if ordered:
        assert len(groups) == segments
