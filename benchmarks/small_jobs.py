"""What is small: an append in a session that runs, and an ingest that somebody types."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import weir
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.local.installation import Installation
from weir.local.spark_start import spark_start
from weir.spark import Appender

ROWS, APPENDS = 1_000, 50


def append_small(setting: Setting) -> Figure:
    """Return the figure of appending few rows again and again in one session, beside writing the
    same DataFrame."""
    setting.durable(True)
    store = weir.open(settings=setting.settings, spark=setting.spark)
    stream = f"shapes/small-{setting.number()}"
    store.create_stream(stream, "customer")
    frame = setting.spark.range(0, ROWS, 1, 2).selectExpr(
        "concat('customer ', id % 97) AS customer", "id AS n", "id * 0.25D AS amount",
        "concat('item ', id) AS item",
    )  # fmt: skip
    appender = Appender(store)

    def ours() -> None:
        for _ in range(APPENDS):
            appender.append_frame(stream, frame, writer_id="bench", batch_id=str(setting.number()))

    def reference() -> None:
        for _ in range(APPENDS):
            frame.write.parquet(f"{setting.folder}/plain/{setting.number()}")

    return Figure(
        "shapes/append-small",
        f"{APPENDS} appends of {ROWS:,} rows in a session that runs, beside writing the same rows "
        "as Parquet",
        ours,
        reference,
        limit=3.5,
        goal=2.0,
    )


def trigger(setting: Setting) -> Figure:
    """Return the figure of typing `weir ingest` for a small file, beside the least program for
    spark-submit that reads the same file and writes it as Parquet."""
    home = setting.folder / f"trigger-{setting.number()}"
    home.mkdir()
    (home / "weir.toml").touch()
    installation = Installation(home / ".weir")
    setting.at_end.callback(installation.remove)
    installation.start_postgres()
    installation.make_data_folders()
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "PG"))}
    python = Path(sys.executable)
    environ |= {
        "PATH": f"{python.parent}{os.pathsep}{environ['PATH']}", "PYSPARK_PYTHON": str(python),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }  # fmt: skip

    def run(*words: str, **more: str) -> None:
        subprocess.run(words, cwd=home, env=environ | more, check=True, capture_output=True)

    weir_command = (str(python), "-m", "weir.terminal")
    run(*weir_command, "create", "shop/orders", "--key", "customer")
    names = (f"orders-{n}.csv" for n in itertools.count())

    def file() -> str:
        name = next(names)
        rows = (f"c{n % 97},{name},{n},{n / 4}\n" for n in range(ROWS))
        (home / name).write_text("customer,item,n,amount\n" + "".join(rows))
        return name

    def ours() -> None:
        run(*weir_command, "ingest", file(), "--stream", "shop/orders")

    def reference() -> None:
        name = file()
        script = str(Path(__file__).with_name("least_ingest.py"))
        start = spark_start(os.environ)
        run("spark-submit", "--master", "local[2]", script, name, f"{name}.parquet", **start)

    return Figure(
        "shapes/trigger",
        f"`weir ingest` of a csv file of {ROWS:,} rows, beside the least spark-submit that reads "
        "it and writes it as Parquet",
        ours,
        reference,
        limit=2.5,
        goal=1.3,
        small_runs=3,
    )


FIGURES = {"shapes/append-small": append_small, "shapes/trigger": trigger}
