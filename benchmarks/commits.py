"""What commits cost: of one writer, of eight beside DuckLake, what they leave behind, and rolls."""

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

from sqlalchemy import Connection, text

from benchmarks import writers
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from benchmarks.writers import FIELDS, ROWS, Writers
from weir.controller.commit import commit
from weir.controller.scale import scale
from weir.controller.streams import create_stream
from weir.controller.transactions import begin
from weir.database import migrate
from weir.database.connection import Database
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.names import StreamName, stream_name

WRITERS = 8


def new_stream(database: Database, name: str) -> StreamName:
    """Return a new stream of one segment."""
    made = stream_name(f"bench/{name}")
    create_stream(
        database, made, routing_key="key", segments=1, fields=FIELDS, request_id=str(made)
    )
    return made


def _begun(database: Database, name: StreamName, batch_id: str) -> Attempt:
    attempt = begin(
        database, name, writer_id="bench", batch_id=batch_id, fingerprint="", lease=600.0,
        source="bench",
    )  # fmt: skip
    assert isinstance(attempt, Attempt)
    return attempt


def single(setting: Setting) -> Figure:
    """Return the figure of a commit, beside the least transaction that is durable."""
    setting.durable(True)
    name = new_stream(setting.database, f"single-{setting.number()}")
    setting.server.psql(
        "CREATE TABLE public.bare (n integer); GRANT INSERT ON public.bare TO weir_app;", "weir"
    )
    commits = 200

    def ours() -> float:
        ready = [
            Staged(_begun(setting.database, name, str(setting.number())), (), FIELDS)
            for _ in range(commits)
        ]
        start = time.perf_counter()
        for one in ready:
            commit(setting.database, one)
        return time.perf_counter() - start

    def bare(connection: Connection) -> None:
        connection.execute(text("INSERT INTO public.bare VALUES (1)"))

    def reference() -> None:
        for _ in range(commits):
            setting.database.transaction(bare)

    return Figure(
        "commit/single",
        f"{commits} commits of an append without files, by one writer, beside as many durable "
        "transactions that insert a single row",
        ours,
        reference,
        limit=4,
        goal=2,
    )


def writers_of(setting: Setting) -> Writers:
    cached = setting.__dict__.get("_writers")
    if cached is None:
        cached = setting.at_end.enter_context(Writers(WRITERS, setting.folder))
        setting.__dict__["_writers"] = cached
    return cached


def beside_ducklake(streams: int, limit: float, goal: float, setting: Setting) -> Figure:
    """Return the figure of `WRITERS` writers that append at once, beside DuckLake."""
    setting.durable(True)
    number = setting.number()
    setting.server.psql(f"CREATE DATABASE lake_{number}")
    dsn = setting.server.dsn(f"lake_{number}", "postgres")
    tables = [f"t{i}" for i in range(streams)]
    with writers.lake(dsn) as lake:
        for table in tables:
            lake.execute(f"CREATE TABLE lake.{table} ({writers.COLUMNS})")
    names = [str(new_stream(setting.database, f"writers-{number}-{i}")) for i in range(streams)]
    notes = {"failed": {"ours": 0, "reference": 0}, "commits": {"ours": 0, "reference": 0}}

    def run(side: str, *how: Any) -> float:
        done = writers_of(setting).append(*how)
        notes["failed"][side] += len(done.failures)
        notes["commits"][side] += done.commits
        if side == "ours" and done.failures:
            raise RuntimeError(f"an append failed: {done.failures[0]}")
        return done.seconds / done.commits

    return Figure(
        f"commit/writers-8-streams-{streams}",
        f"seconds per commit of a file of {ROWS} rows that is there already, by {WRITERS} "
        f"processes at once on {streams} stream(s), beside DuckLake on the same Postgres "
        "(ducklake_add_data_files, inlining off)",
        partial(run, "ours", writers.weir, setting.dsn, names, 40),
        partial(run, "reference", writers.ducklake, dsn, tables, 20),
        limit=limit,
        goal=goal,
        unit="s per commit",
        notes=notes,
    )


def bloat(setting: Setting) -> Figure:
    """Return the figure that says whether the tables grow by more than what is in them."""
    setting.durable(False)
    first = 1000  # until the first pages of the tables are full
    few, many = (10_000, 100_000) if setting.full else (2000, 4000)
    measured: dict[str, float] = {}

    def bytes_per_commit(which: str) -> float:
        """Return the bytes that a commit adds. One sequence of commits is measured for both sides
        of a pair."""
        if not measured:
            (done, size), *later = _sizes(setting, [first, few, many])
            costs = [(s - size) / (d - done) for d, s in later]
            measured.update(zip(("few", "many"), costs, strict=True))
        return measured.pop(which)

    return Figure(
        "commit/bloat",
        f"bytes that all tables together grow by per commit of a file, by {WRITERS} processes, "
        f"after {first:,} commits: up to {many:,} beside up to {few:,}",
        partial(bytes_per_commit, "many"),
        partial(bytes_per_commit, "few"),
        limit=1.1,
        unit="bytes per commit",
        warm_up=0,
    )


def _sizes(setting: Setting, totals: Sequence[int]) -> list[tuple[int, int]]:
    """Append to one stream of a new database until it has about each of `totals` commits. Return
    for each total how many there were, and the bytes of all tables."""
    name = f"growing_{setting.number()}"
    setting.server.psql(
        f"CREATE DATABASE {name} OWNER weir_owner; GRANT CONNECT ON DATABASE {name} TO weir_app;"
    )
    migrate.upgrade(setting.server.dsn(name, "weir_owner"))
    dsn = setting.server.dsn(name, "weir_app")
    database = Database(dsn, patience=60.0, connect_patience=10.0)
    stream = str(new_stream(database, "growing"))
    done, sizes = 0, []
    for total in totals:
        appended = writers_of(setting).append(
            writers.weir, dsn, [stream], round((total - done) / WRITERS)
        )
        if appended.failures:
            raise RuntimeError(f"an append failed: {appended.failures[0]}")
        done += appended.commits
        sizes.append((done, database.transaction(_bytes)))
    database.dispose()
    setting.server.psql(f"DROP DATABASE {name} WITH (FORCE)")
    return sizes


def _bytes(connection: Connection) -> int:
    return int(
        connection.execute(
            text(
                """SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
                WHERE c.relnamespace = 'weir_internal'::regnamespace AND c.relkind = 'r'"""
            )
        ).scalar_one()
    )


def roll_cost(setting: Setting) -> Figure:
    """Return the figure that says whether appends that must roll share one roll."""
    setting.durable(False)

    def epochs(appends: int) -> float:
        """Return how many epochs a split adds while `appends` appends are being written."""
        name = new_stream(setting.database, f"roll-{setting.number()}")
        attempts = [_begun(setting.database, name, str(i)) for i in range(appends)]
        scale(setting.database, name, seal=["0.0"], request_id=f"{name} split")
        barrier = Barrier(appends)

        def end(attempt: Attempt) -> None:
            database = Database.of(setting.settings)
            file = StagedFile(0, f"{attempt.folder}part.parquet", ROWS, 10 * ROWS, 0, ROWS - 1)
            barrier.wait(timeout=60)
            commit(database, Staged(attempt, (file,), FIELDS))
            database.dispose()

        with ThreadPoolExecutor(appends) as pool:
            list(pool.map(end, attempts))
        return setting.database.transaction(
            lambda c: float(
                c.execute(
                    text("SELECT current_epoch FROM stream WHERE scope = 'bench' AND name = :name"),
                    {"name": name.name},
                ).scalar_one()
            )
        )

    return Figure(
        "commit/roll_cost",
        f"epochs that one split adds while {WRITERS} appends are being written, which commit "
        "together, beside one append",
        partial(epochs, WRITERS),
        partial(epochs, 1),
        limit=1,
        unit="epochs",
    )


FIGURES = {
    "commit/single": single,
    "commit/writers-8-streams-1": partial(beside_ducklake, 1, 1 / 6, 1 / 15),
    "commit/writers-8-streams-16": partial(beside_ducklake, 16, 1 / 10, 1 / 20),
    "commit/bloat": bloat,
    "commit/roll_cost": roll_cost,
}
