"""Writes docs/images/pages: pictures of the real pages, in a real Chromium.

`make pictures` appends real flights of New York to a throw-away installation, scales the stream
under readers, truncates it, and looks at the pages. What took a minute is spread over three days
then, as if the flights had come in that time: all clocks and times of the database, alike.
"""

import tempfile
from pathlib import Path
from random import Random

import psycopg2
import pyarrow.compute as pc
from playwright.sync_api import Page, sync_playwright
from psycopg2 import sql

import weir
from flights.input import parsed, source_lines
from tests.acceptance.browser import FLAGS, chromium
from tests.pages.serving import anybody, serving
from weir.database import migrate
from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres
from weir.pages.app import Access, create_app
from weir.programs.store import StreamStore
from weir.settings import load

TARGET = Path(__file__).parent / "images" / "pages"
FLIGHTS, LATE, STEPS, SPAN = "nyc/flights", "late-flights", 120, 3 * 86400
# What is looked at: its address, and what of it (none: the window).
VIEWS = {
    "streams": ("streams", ""),
    "stream": (f"stream?name={FLIGHTS}", ""),
    "map": (f"stream?name={FLIGHTS}", "section:has(.map)"),
    "group": (f"group?name={LATE}", ""),
    "retention": ("retention", ""),
    "lineage": (f"lineage?stream={FLIGHTS}", ""),
    "events": (f"events?name={FLIGHTS}", ""),
    "act": (f'act?action=scale_stream&given={{"stream":"{FLIGHTS}","segments":["1.0"]}}', ""),
}
MODES = {"light": (1280, "light"), "dark": (1280, "dark"), "narrow": (480, "light")}
# Which pictures there are, so that they stay few.
PICTURES = [
    *((name, "light") for name in VIEWS),
    ("map", "dark"),
    ("streams", "narrow"),
]


def main() -> None:
    """Make the pictures anew."""
    TARGET.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, throw_away_postgres() as postgres:
        migrate.upgrade(postgres.dsn("weir", "weir_owner"))
        logins.make_users(postgres)
        settings = load({"WEIR_STATE": folder, "WEIR_DATABASE": postgres.dsn("weir", "weir_app")})
        with weir.open(settings=settings) as store:
            tell(store)
        spread(postgres)
        app = create_app(Access(lambda _: settings, anybody, anybody, anybody, anybody))
        with serving(app) as address, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
            for name, mode in PICTURES:
                width, scheme = MODES[mode]
                page = browser.new_page(
                    viewport={"width": width, "height": 860},
                    color_scheme="dark" if scheme == "dark" else "light",
                )
                look(page, address, name, TARGET / f"{name}-{mode}.png")
                page.close()
            browser.close()


def tell(store: StreamStore) -> None:
    """Append flights bit by bit, while three groups read them at their own pace."""
    chance = Random(1)  # noqa: S311 - draws rows, no secrets
    flights = parsed(source_lines()[:40_000])  # of January, and of October
    store.create_stream(
        FLIGHTS, "tailnum", segments=2, on_missing_key="spread", tags=["public"],
        retention="consumed", retain_min_age="12 h",
    )  # fmt: skip
    store.create_stream("nyc/late", "tailnum", on_missing_key="spread")
    store.create_stream("nyc/weather", "origin", tags=["public"], retention="age",
                        retain_max_age="30 d")  # fmt: skip
    for name in (LATE, "search-index", "fraud"):
        store.create_reader_group(name, [FLIGHTS])
    store.create_reader_group("dashboard", ["nyc/late", "nyc/weather"])
    size, at, hot = flights.num_rows // (3 * STEPS), 0, "0.0"
    for step in range(STEPS):
        rows = int(size * chance.uniform(0.3, 1) * (1 + (step > 40) + (step > 90)))
        store.append(FLIGHTS, flights.slice(at, rows))
        at += rows
        if step % 5 == 0:
            store.append("nyc/weather", [{"origin": "JFK", "temp": chance.gauss(12, 4)}])
        if step in (40, 65, 90):
            done = store.scale_stream(FLIGHTS, segments=[hot], parts=2)
            hot = str(done["created"][0][0])
        if step % 20 == 19:
            store.stream_cuts()
        read(store, "search-index")
        if step % 2 == 0:
            read(store, LATE, "stream:nyc/late")
        if step % 2 == 0 and step < 100:
            read(store, "fraud")
        if step % 10 == 0:
            read(store, "dashboard")
    store.checkpoints()


def read(store: StreamStore, group: str, output: str = "") -> None:
    """Read a batch of a group, and append its late flights to another stream."""
    for batch in store.reader(group, batch_files=8):
        late = {output: batch.events.filter(pc.field("dep_delay") > 60)} if output else {}
        batch.commit(late)
        return


_TIME = sql.SQL(
    "UPDATE {table} SET {at} = %(now)s - (%(now)s - {at}) * %(times)s::float8 WHERE {at} < %(now)s"
)
_CLOCK = sql.SQL(
    """UPDATE {table} SET {at} = %(end)s - ((%(end)s - {at}) * %(times)s::float8)::bigint
    WHERE {at} BETWEEN %(begin)s AND %(end)s"""
)


def spread(postgres: EmbeddedPostgres) -> None:
    """Move all clocks and times back, so that the story took three days and ends now."""
    connection = psycopg2.connect(postgres.dsn("weir", "postgres"))
    with connection, connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute("SET search_path = weir_internal, pg_catalog")
        cursor.execute("SELECT min(created_at), now_clock(), clock_timestamp() FROM epoch")
        [(begin, end, now)] = cursor.fetchall()
        factor = SPAN * 1_000_000 / (end - begin)
        given = {"end": end, "begin": begin, "now": now, "times": factor}
        cursor.execute(
            """SELECT table_name, column_name, data_type FROM information_schema.columns
            JOIN information_schema.tables USING (table_schema, table_name)
            WHERE table_schema = 'weir_internal' AND table_type = 'BASE TABLE' AND (
                data_type = 'timestamp with time zone' OR data_type = 'bigint' AND (
                column_name ~ 'clock' OR (table_name, column_name) = ('epoch', 'created_at')))"""
        )
        for table, column, kind in cursor.fetchall():
            moved = _CLOCK if kind == "bigint" else _TIME
            names = {"table": sql.Identifier(table), "at": sql.Identifier(column)}
            cursor.execute(moved.format(**names), given)
    connection.close()


def look(page: Page, address: str, view: str, target: Path) -> None:
    """Take a picture of a page, once it shows what it asked for."""
    path, part = VIEWS[view]
    page.goto(f"{address}/{path}")
    page.locator(".shown[aria-busy=false]").wait_for()
    page.wait_for_timeout(1000)  # charts are drawn after texts
    if part:
        page.locator(part).scroll_into_view_if_needed()
        page.locator(part).screenshot(path=target)
    else:
        page.screenshot(path=target)
    print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
