"""What is small: an append in a session that runs, and an ingest that somebody types."""

import itertools
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import weir
from benchmarks.figure import Figure
from benchmarks.jvm import as_a_job, options_in
from benchmarks.setting import Setting
from weir.local.installation import Installation
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


_TO_PARQUET = """
import sys
from pyarrow import csv, parquet
parquet.write_table(csv.read_csv(sys.argv[1]), sys.argv[2])
"""


@dataclass
class _Terminal:
    """The terminal of somebody who has an installation with a stream, and new files for it."""

    home: Path
    environ: dict[str, str]
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    @classmethod
    def made(cls, setting: Setting) -> "_Terminal":
        home = setting.folder / f"terminal-{setting.number()}"
        home.mkdir()
        (home / "weir.toml").touch()
        installation = Installation(home / ".weir")
        setting.at_end.callback(installation.remove)
        installation.start_postgres()
        installation.make_data_folders()
        environ = as_a_job(installation.state)
        own = {k: v for k, v in environ.items() if not k.startswith(("WEIR_", "PG"))}
        made = cls(home, own)
        made.weir("create", "shop/orders", "--key", "customer")
        return made

    def run(self, *words: str) -> None:
        subprocess.run(words, cwd=self.home, env=self.environ, check=True, capture_output=True)

    def weir(self, *words: str) -> None:
        self.run(sys.executable, "-m", "weir.terminal", *words)

    def ingest(self) -> None:
        """Type `weir ingest` for a new file."""
        self.weir("ingest", self.file(), "--stream", "shop/orders")

    def file(self) -> str:
        """Make a new csv file, and return its name."""
        name = f"orders-{next(self._numbers)}.csv"
        rows = (f"c{n % 97},{name},{n},{n / 4}\n" for n in range(ROWS))
        (self.home / name).write_text("customer,item,n,amount\n" + "".join(rows))
        return name


def trigger(setting: Setting) -> Figure:
    """Return the figure of typing `weir ingest` for a small file, beside the least program for
    spark-submit that reads the same file and writes it as Parquet."""
    terminal = _Terminal.made(setting)
    script = str(Path(__file__).with_name("least_ingest.py"))

    def reference() -> None:
        name = terminal.file()
        terminal.run("spark-submit", "--master", "local[2]", script, name, f"{name}.parquet")

    return Figure(
        "shapes/trigger",
        f"`weir ingest` of a csv file of {ROWS:,} rows, beside the least spark-submit that reads "
        "it and writes it as Parquet",
        terminal.ingest,
        reference,
        limit=2.5,
        goal=1.3,
        small_runs=3,
        notes={"jvm": options_in(terminal.environ)},
    )


def ingest_small(setting: Setting) -> Figure:
    """Return the figure of typing `weir ingest` for a small file, beside the least Python that
    reads the same file with pyarrow and writes it as Parquet."""
    terminal = _Terminal.made(setting)

    def reference() -> None:
        name = terminal.file()
        terminal.run(sys.executable, "-c", _TO_PARQUET, name, f"{name}.parquet")

    return Figure(
        "people/ingest_small",
        f"`weir ingest` of a csv file of {ROWS:,} rows from the terminal, beside a Python that "
        "reads it with pyarrow and writes it as Parquet",
        terminal.ingest,
        reference,
        limit=4.0,
        small_runs=3,
        notes={"jvm": options_in(terminal.environ)},
    )


FIGURES = {
    "shapes/append-small": append_small,
    "shapes/trigger": trigger,
    "people/ingest_small": ingest_small,
}
