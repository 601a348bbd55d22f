"""What a Weir task costs that finds nothing to do, beside the least job Spark can run."""

import subprocess
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.jvm import as_a_job, options_in
from benchmarks.setting import Setting
from weir.operations.jobs import ACTIONS


def task_overhead(setting: Setting) -> Figure:
    """Return the figure of a weir_* job that finds nothing to do, beside a bare spark-submit."""
    environment = as_a_job(setting.folder) | {"WEIR_DATABASE": setting.dsn}

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
        notes={"jvm": options_in(environment)},
    )


FIGURES = {"task_overhead": task_overhead}
