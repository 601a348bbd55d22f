"""A back-test as its form starts it: positions from the files, and a table."""

import json
from typing import Any

import pyarrow as pa
import pytest

from tests.spark.installation import Installation
from tests.world.jobs import run_job
from tests.world.scaling import pass_time
from tests.world.streams import Lane
from weir.programs.opening import shared

pytestmark = pytest.mark.usefixtures("configured")


def replayed(weir: Installation, **arguments: Any) -> dict[str, Any]:
    """The report of a back-test that must succeed."""
    assert run_job("back_test", ["--arguments", json.dumps(arguments)]) == 0
    found = "SELECT report FROM job_runs WHERE job = 'back_test' ORDER BY started_at DESC LIMIT 1"
    return dict(weir.value(found))


def test_a_replay_finds_the_hot_key_in_the_files(
    weir: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    stream = weir.create(segments=1)
    lane = Lane(weir.database, stream, weir.value("SELECT max(stream_id) FROM stream"))
    table = pa.table({"k": ["hot"] * 300 + [f"key-{i}" for i in range(100)]})
    for n in range(12):
        pass_time(lane, 100)
        shared(weir.settings).append(str(stream), table, writer_id="w", batch_id=str(n))
    report = replayed(weir, stream=str(stream), target_rate=1, scale_factor=4)
    assert report["positions"] == "from a sample of the stream's files"
    assert [one["key"] for one in report["hot_keys"]] == ["hot"]
    assert report["hot_keys"][0]["share_of_its_segment"] == pytest.approx(0.75, abs=0.02)
    assert report["with the policy"]["splits"] >= 1
    assert report["recorded"]["scales"] == 0
    assert "largest rate" in capsys.readouterr().out
    evenly = replayed(weir, stream=str(stream), target_rate=1, read_files=False, last="1 h")
    assert evenly["positions"].startswith("spread evenly")
    assert evenly["hot_keys"] == []
