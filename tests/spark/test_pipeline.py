"""The example of a declarative pipeline, run by the `spark-pipelines` of the installed Spark."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import weir
from tests.crash.jobs import ROOT, write_config
from weir.database.connection import Database
from weir.settings import Settings

EXAMPLE = ROOT / "examples/pipeline"


@pytest.mark.release
@pytest.mark.timeout(600)
def test_a_pipeline_reads_a_stream_and_appends_to_another_each_event_once(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    folder = shutil.copytree(EXAMPLE, tmp_path / "pipeline")
    spec = folder / "spark-pipeline.yml"
    spec.write_text(
        spec.read_text().replace("/data/pipelines/large-orders", str(tmp_path / "storage"))
    )
    environment = {
        **os.environ, "WEIR_CONFIG": str(write_config(settings)), "PYTHONPATH": f"{ROOT}/plugins",
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        command = ["spark-pipelines", "run", *more]
        return subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False
        )

    with weir.open(settings=settings) as store:
        for name in ("shop/orders", "shop/large"):
            store.create_stream(name, routing_key="customer", segments=2)
        for first in (0, 100):
            rows = [{"customer": f"c{n % 7}", "amount": n + 50} for n in range(first, first + 100)]
            store.append("shop/orders", rows)
            done = run()
            assert done.returncode == 0, done.stdout + done.stderr
            large = store.read("shop/large")
            assert sorted(large["amount"].to_pylist()) == list(range(100, first + 150))
        again = run("--full-refresh-all")  # its checkpoint is new, and so would be all its events
        assert "checkpoint_differs" in again.stdout + again.stderr
        assert store.count("shop/large") == 150
