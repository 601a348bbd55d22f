"""Spark and pyarrow verify what either has written: digests are equal, and damage is found."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from spark_jobs.verify import contents_by
from tests.chance import random_for
from tests.digests import rows_of_every_type
from tests.spark.installation import Installation
from weir.annex.verification.verify import Verified, verify
from weir.programs.opening import shared

pytestmark = [pytest.mark.jvm, pytest.mark.release]


def verified(weir: Installation, engine: str) -> Verified:
    return verify(weir.opened, contents=contents_by(weir.opened, engine))


def test_either_engine_verifies_what_either_has_written(weir: Installation, tmp_path: Path) -> None:
    """Rows of every type by both engines, a key with a transform, damage of two kinds."""
    plain = weir.create("s/plain", "key", segments=3)
    computed = weir.create("s/computed", "concat(key, '!')", segments=2)
    for batch in range(2):
        rows = rows_of_every_type(random_for("rows", batch), 60)
        rows = rows.append_column("key", pa.array([f"key {i % 7}" for i in range(60)]))
        pq.write_table(rows, tmp_path / f"{batch}.parquet")
        frame = weir.spark.read.parquet(str(tmp_path / f"{batch}.parquet"))
        weir.append(plain, frame, f"spark {batch}")
        weir.append(computed, frame.repartition(3), f"spark {batch}")
        shared(weir.settings).append(str(plain), rows, writer_id="w", batch_id=str(batch))
    assert weir.query("SELECT count(*) FROM time_index WHERE digest IS NULL") == [(0,)]
    reports = [verified(weir, engine).report() for engine in ("spark", "pyarrow")]
    assert [one["keys_not_checked"] for one in reports] == [0, 0]
    assert reports[0] == reports[1]
    assert reports[0] | {"files": 0, "bytes": 0} == {
        "streams": 2, "files": 0, "events": 360, "bytes": 0, "without_digest": 0, "damage": {},
        "keys_not_checked": 0, "repaired": 0, "complete": True,
    }  # fmt: skip
    (path,) = weir.query("SELECT path FROM data_file ORDER BY bytes DESC LIMIT 1")[0]
    file = Path(weir.settings.warehouse, path)
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 1
    file.write_bytes(data)
    assert dict(verified(weir, "spark").damage) == {"end": 1}  # all of a small file is its end
    # As before the end of a large file.
    weir.database.transaction(
        lambda c: c.exec_driver_sql("UPDATE data_file SET end_hash = NULL"))  # fmt: skip
    for engine in ("spark", "pyarrow"):
        assert dict(verified(weir, engine).damage) == {"unreadable": 1}
    assert weir.query("SELECT path, kind FROM found_damage") == [(path, "unreadable")]
