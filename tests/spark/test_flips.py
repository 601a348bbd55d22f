"""All damage that is planted is found, whoever wrote the file: each kind, and hundreds of flips."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from tests.chance import random_for
from tests.compaction.world import EVER
from tests.digests import rows_of_every_type
from tests.spark.installation import Installation
from weir.annex.verification.new_files import checking
from weir.annex.verification.verify import Verified, by_pyarrow, verify
from weir.compaction.run import compact
from weir.model.names import StreamName
from weir.programs.opening import shared

pytestmark = [pytest.mark.jvm, pytest.mark.release, pytest.mark.random]
FLIPS = 200  # of each kind of files


@pytest.fixture
def streams(weir: Installation, tmp_path: Path) -> list[StreamName]:
    """Streams whose files were written by Spark, by pyarrow, and by compactions of either."""
    made = [weir.create(f"s/{name}", "key", segments=2)
            for name in ("spark", "pyarrow", "spark_compacted", "pyarrow_compacted")]  # fmt: skip
    for batch in range(3):
        rows = rows_of_every_type(random_for("flips", batch), 60)
        rows = rows.append_column("key", pa.array([f"key {i % 7}" for i in range(60)]))
        pq.write_table(rows, tmp_path / f"{batch}.parquet")
        frame = weir.spark.read.parquet(str(tmp_path / f"{batch}.parquet"))
        for stream in made:
            if "spark" in str(stream):
                weir.append(stream, frame, f"{stream} {batch}")
            else:
                shared(weir.settings).append(str(stream), rows, writer_id="w", batch_id=str(batch))
    done = compact(
        weir.database, weir.settings, EVER, made[2:], thorough=True, check=checking(weir.opened)
    )
    assert [(one["files_before"], one["files_after"]) for one in done] == [(6, 2)] * 2
    for stream in made:
        verified(weir, stream)  # from now on the hash of all bytes is known, of Spark's files, too
    return made


def verified(weir_: Installation, stream: StreamName) -> Verified:
    app = weir_.opened
    return verify(app, stream=str(stream), contents=by_pyarrow(app, contents=True))


def paths(weir_: Installation, stream: StreamName) -> list[Path]:
    rows = weir_.query("SELECT path FROM data_file WHERE stream_name = :s", s=str(stream))
    return [Path(weir_.settings.warehouse, row.path) for row in rows]


def damaged(weir_: Installation) -> set[Path]:
    rows = weir_.query("SELECT path FROM found_damage")
    return {Path(weir_.settings.warehouse, row.path) for row in rows}


def test_every_flip_of_a_bit_is_found_in_data_and_footers(
    weir: Installation, streams: list[StreamName]
) -> None:
    for stream in streams:
        for case in range(FLIPS):
            random = random_for("flip", str(stream), case)
            file = random.choice(paths(weir, stream))
            before = file.read_bytes()
            data = bytearray(before)
            footer = int.from_bytes(data[-8:-4], "little") + 8
            at = random.randrange(len(data) - footer if case % 2 else 0, len(data))
            data[at] ^= 1 << random.randrange(8)
            file.write_bytes(data)
            assert verified(weir, stream).damage, (str(stream), case, at, len(data))
            assert damaged(weir) == {file}
            file.write_bytes(before)
        assert not verified(weir, stream).damage
        assert damaged(weir) == set()


def cut_short(one: Path, _: Path) -> None:
    os.truncate(one, one.stat().st_size * 2 // 3)


def swapped(one: Path, other: Path) -> None:
    data = one.read_bytes(), other.read_bytes()
    one.write_bytes(data[1])
    other.write_bytes(data[0])


def edited(one: Path, _: Path) -> None:
    """Change one value, and keep what the file notes."""
    rows = pq.read_table(one)
    at = rows.schema.get_field_index("key")
    first = pc.equal(pa.array(range(len(rows))), 0)
    changed = rows.set_column(at, "key", pc.if_else(first, "another", rows["key"]))
    pq.write_table(changed, one)


def renamed(one: Path, _: Path) -> None:
    one.rename(one.with_name("other.parquet"))


@pytest.mark.parametrize(
    "plant",
    [lambda one, _: one.unlink(), cut_short, swapped, edited, renamed],
    ids=["deleted", "truncated", "swapped", "edited", "renamed"],
)
def test_each_kind_of_damage_is_found_wherever_it_is_planted(
    weir: Installation, streams: list[StreamName], tmp_path: Path,
    plant: Callable[[Path, Path], None], request: pytest.FixtureRequest,
) -> None:  # fmt: skip
    kind = request.node.callspec.id
    for stream in streams:
        random = random_for(kind, str(stream))
        one, other = random.sample(paths(weir, stream), 2)
        backup = tmp_path / "backup"
        shutil.copytree(weir.settings.warehouse, backup)
        plant(one, other)
        wanted = {one, other} if kind == "swapped" else {one}
        wanted |= {one.with_name("other.parquet")} if kind == "renamed" else set()
        verified(weir, stream)
        assert damaged(weir) == wanted
        shutil.rmtree(weir.settings.warehouse)
        backup.rename(weir.settings.warehouse)
        assert not verified(weir, stream).damage
        assert damaged(weir) == set()
