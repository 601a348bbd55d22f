"""What consumers' outputs and declarations cost: an upsert beside one by hand, and a file with
nothing to change."""

import json
import time
from collections.abc import Callable

import psycopg2
import yaml
from sqlalchemy import text

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from tests.watching import count_statements
from weir.annex.declarations.apply import apply
from weir.annex.declarations.declared import Declared
from weir.annex.declarations.reading import read_text
from weir.operations.asked import Allowed
from weir.reader_groups.outputs.publication import Publication

COLUMNS = ["k", "v", "label"]
TYPES = [20, 701, 25]  # bigint, double precision, text


def upsert(setting: Setting) -> Figure:
    """Return the figure of upserting rows by key, half of them new, beside the same statement
    by hand. The staging table of each side holds each key once."""
    setting.durable(True)
    rows = 1_000_000 if setting.full else 200_000
    database = setting.database
    owner = psycopg2.connect(setting.server.dsn("weir", "weir_owner"))
    owner.autocommit = True
    for table in ("ours", "by_hand"):
        owner.cursor().execute(
            f"CREATE TABLE public.{table} (k bigint PRIMARY KEY, v double precision, label text);"
            f"GRANT SELECT, INSERT, UPDATE ON public.{table} TO weir_publisher, weir_app"
        )
    given = f"""SELECT (i::bigint * 7919) % {rows} AS k, i::float8 AS v, 'row ' || i AS label
        FROM generate_series(1, {rows}) i"""  # noqa: S608 - a number

    def filled(table: str, staging: str, more: str) -> None:
        owner.cursor().execute(
            f"""TRUNCATE public.{table}, {staging};
            INSERT INTO public.{table} SELECT i, 0, 'old' FROM generate_series(0, {rows} - 1, 2) i;
            INSERT INTO {staging} ({", ".join(COLUMNS)}{more and ", _weir_clock, _weir_place"})
            SELECT g.*{more} FROM ({given}) g"""  # noqa: S608 - constants
        )
        owner.cursor().execute(f"ANALYZE public.{table}")

    how = Publication("upsert", ("k",)).statement({})
    make = text("SELECT make_staging('g0_t0_0', :c, CAST(:t AS oid[]), :m)")
    named = {"c": [*COLUMNS, "_weir_clock", "_weir_place"], "t": [*TYPES, 20, 20], "m": [-1] * 5}
    database.transaction(lambda c: c.execute(make, named))
    owner.cursor().execute(
        "CREATE UNLOGGED TABLE public.staged (k bigint, v double precision, label text)"
    )

    def ours() -> float:
        filled("ours", "weir_staging.g0_t0_0", ", 0, v::bigint")
        [(piece,)] = database.transaction(
            lambda c: c.execute(text("SELECT _weir_piece FROM weir_staging.g0_t0_0 LIMIT 1")).all()
        )
        given = {"staging": "g0_t0_0", "table": "public.ours", "pieces": [piece], "how": how}
        start = time.perf_counter()
        found = database.transaction(lambda c: c.execute(
            text("SELECT publish_tables(CAST(:o AS jsonb))"),
            {"o": json.dumps([given])}).scalar_one())  # fmt: skip
        assert found == [{"staged": rows, "told": None}]
        return time.perf_counter() - start

    def by_hand() -> float:
        filled("by_hand", "public.staged", "")
        start = time.perf_counter()
        owner.cursor().execute(
            """INSERT INTO public.by_hand SELECT * FROM public.staged ON CONFLICT (k) DO UPDATE
            SET v = excluded.v, label = excluded.label"""
        )
        return time.perf_counter() - start

    return Figure(
        "people/upsert", f"upserting {rows:,} rows by key, half of them new, beside the same "
        "INSERT ... ON CONFLICT by hand", ours, by_hand, limit=1.2, notes={"rows": rows},
    )  # fmt: skip


def declared(setting: Setting) -> Figure:
    """Return the figure of applying a file of 500 streams in which nothing differs, beside one of
    10, in statements."""
    many, few = 500, 10

    def file(count: int) -> Declared:
        streams = {f"people/s{i}": {"routing_key": "k"} for i in range(count)}
        return read_text(yaml.safe_dump({"streams": streams}))

    database = setting.filled("people", "SELECT 1")

    def applied(count: int) -> list[object]:
        allowed = Allowed(loss=False, truncated=False, named=False)
        return list(apply(database, setting.settings, file(count), allowed, request_id="bench",
                          say=lambda line: None))  # fmt: skip

    assert len(applied(many)) == many
    counted = count_statements(database)

    def side(count: int) -> Callable[[], float]:
        def run() -> float:
            del counted[:]
            assert applied(count) == []
            return float(len(counted))

        return run

    return Figure(
        "people/apply", f"statements of applying {many} streams with nothing to change beside "
        f"{few}", side(many), side(few), limit=1.0, unit="statements",
    )  # fmt: skip


FIGURES = {"people/upsert": upsert, "people/apply": declared}
