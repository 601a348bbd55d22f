"""What small appends cost a person, from an Arrow table to its commit, and importing `weir`."""

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import writers
from benchmarks.commits import WRITERS, new_stream, writers_of
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from benchmarks.writers import COLUMNS, ROWS, Append, Lake


def small(setting: Setting) -> Figure:
    """Return the figure of small appends one after the other, by one program."""
    count = 500 if setting.full else 100
    ours, lake = _prepared(setting)

    def side(append: Append, to: str) -> Callable[[], float]:
        def run() -> float:
            start = time.perf_counter()
            for _ in range(count):
                append(to, "")
            return (time.perf_counter() - start) / count

        return run

    return Figure(
        "people/append_small",
        f"an append of an Arrow table of {ROWS} rows through one opened installation, the mean of "
        f"{count}, beside DuckLake on the same Postgres inserting the same (inlining off)",
        side(writers.weir_rows(setting.settings), ours),
        side(writers.ducklake_rows(lake), "t"),
        limit=1.5, goal=1, unit="s per append", notes={"appends": count},
    )  # fmt: skip


def at_once(setting: Setting) -> Figure:
    """Return the figure of small appends by several processes to one stream."""
    each = 20
    ours, lake = _prepared(setting)
    failed = {"ours": 0, "reference": 0}

    def run(side: str, connect: Any, place: Any, to: Any) -> float:
        done = writers_of(setting).append(connect, place, to, each)
        failed[side] += len(done.failures)
        if side == "ours" and done.failures:
            raise RuntimeError(f"an append failed: {done.failures[0]}")
        return done.seconds / done.commits

    return Figure(
        "people/append_writers",
        f"seconds per append of an Arrow table of {ROWS} rows, by {WRITERS} processes at once "
        f"that append {each} times each to one stream, beside DuckLake on the same Postgres "
        "(inlining off, its retries at their best)",
        partial(run, "ours", writers.weir_rows, setting.settings, [ours]),
        partial(run, "reference", writers.ducklake_rows, lake, ["t"]),
        limit=0.8, unit="s per append", notes={"failed": failed},
    )  # fmt: skip


def _prepared(setting: Setting) -> tuple[str, Lake]:
    """Return a new stream of one segment, and a new DuckLake with an empty table `t`."""
    setting.durable(True)
    number = setting.number()
    setting.server.psql(f"CREATE DATABASE lake_{number}")
    folder = setting.folder / f"lake_{number}"
    folder.mkdir()
    lake = Lake(setting.server.dsn(f"lake_{number}", "postgres"), str(folder))
    with writers.lake(*lake) as connection:
        connection.execute(f"CREATE TABLE lake.t ({COLUMNS})")
    return str(new_stream(setting.database, f"appended-{number}")), lake


def imports(name: str, ours: str, theirs: str, limit: float, setting: Setting) -> Figure:
    """Return the figure of what new processes import."""

    def side(code: str) -> Callable[[], None]:
        def run() -> None:
            for _ in range(10 if setting.full else 4):
                subprocess.run([sys.executable, "-c", code], check=True)

        return run

    return Figure(
        f"people/{name}", f"`{ours}` in a new process, beside `{theirs}`", side(ours),
        side(theirs), limit,
    )  # fmt: skip


LIBRARIES = "import pyarrow.parquet, pyarrow.compute, sqlalchemy.dialects.postgresql, psycopg2"
FIGURES = {
    "people/append_small": small,
    "people/append_writers": at_once,
    "people/import": partial(imports, "import", "import weir", "import pyarrow", 1.5),
    "people/open": partial(imports, "open", "import weir; weir.open", LIBRARIES, 2.0),
}
