"""What a Weir task costs that finds nothing to do, beside the least job Spark can run."""

import os
import subprocess
import sys
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.local.spark_start import spark_start
from weir.operations.jobs import ACTIONS


def task_overhead(setting: Setting) -> Figure:
    """Return the figure of a weir_* job that finds nothing to do, beside a bare spark-submit."""
    environment = {
        **os.environ,
        "WEIR_STATE": str(setting.folder),
        "WEIR_DATABASE": setting.dsn,
        "SPARK_LOCAL_IP": "127.0.0.1",
        **spark_start(os.environ),
        "PYSPARK_PYTHON": sys.executable,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def submit(*words: str) -> None:
        subprocess.run(
            ["spark-submit", "--master", "local[2]", *words],
            env=environment,
            check=True,
            capture_output=True,
        )

    return Figure(
        "task_overhead",
        "weir_checkpoints with nothing to do beside a bare spark-submit of a job that starts a "
        "session and counts one row",
        lambda: submit(ACTIONS["checkpoints"].file),
        lambda: submit(str(Path(__file__).with_name("empty_job.py"))),
        limit=1.3,
    )


FIGURES = {"task_overhead": task_overhead}
