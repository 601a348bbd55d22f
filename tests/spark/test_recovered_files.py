"""A recovery puts files of Spark back: what a compaction made of them, and what it was made of."""

import json
import shutil
from pathlib import Path

import pytest

from tests.compaction.world import EVER
from tests.spark.installation import Installation, to_pandas
from tests.world.streams import run, unique
from weir.annex.recovery.recover import RecoverReport, recover
from weir.annex.verification.new_files import checking
from weir.compaction.run import compact
from weir.controller.ownership import check_warehouse_ownership
from weir.model.names import StreamName
from weir.retention.garbage import sweep

pytestmark = pytest.mark.release
OF_STREAM = "SELECT jsonb_agg(to_jsonb(f)) FROM data_file f"


def replaced(weir: Installation, stream: StreamName) -> None:
    compact(weir.database, weir.settings, EVER, [stream], thorough=True)
    sweep(weir.database, weir.settings.warehouse, 0.0)


def recovered(weir: Installation) -> RecoverReport:
    return recover(
        weir.database, weir.settings.warehouse, unknown_files="keep",
        check=checking(weir.opened), request_id=unique("recover"),
    )  # fmt: skip


def test_files_of_spark_are_put_back_from_either_side_of_a_compaction(
    weir: Installation, tmp_path: Path
) -> None:
    check_warehouse_ownership(weir.database, weir.settings.warehouse)
    stream = weir.create(segments=2)
    for i in range(3):
        rows = [(f"key {n % 7}", n) for n in range(i * 40, i * 40 + 40)]
        frame = weir.spark.createDataFrame(rows, "k string, n long").repartition(2)
        weir.append(stream, frame)
    before = to_pandas(weir.frame(stream, "stream"))
    shutil.copytree(weir.settings.warehouse, tmp_path / "backup")
    known = json.dumps(weir.value(OF_STREAM))
    replaced(weir, stream)
    new = json.dumps(weir.value(OF_STREAM))
    for rows_of, lack in ((known, len(json.loads(known))), (new, 2)):
        if rows_of == new:  # the warehouse is the older one
            for path in Path(weir.settings.warehouse).glob("[0-9]*"):
                shutil.rmtree(path)
            shutil.copytree(tmp_path / "backup", weir.settings.warehouse, dirs_exist_ok=True)
        run(weir.database, "DELETE FROM garbage")
        run(weir.database, "DELETE FROM data_file")
        run(
            weir.database,
            """INSERT INTO data_file SELECT * FROM jsonb_populate_recordset(
                CAST(NULL AS data_file), CAST(:rows AS jsonb))""",
            rows=rows_of,
        )
        done = recovered(weir)
        assert (done["missing_files"], done["found"], done["lost"]) == (lack, lack, [])
        assert to_pandas(weir.frame(stream, "stream")).equals(before)
