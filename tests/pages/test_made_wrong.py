"""What goes wrong for real: processes that are killed and stopped, a disk that is full, a byte that
flips. The page says it in its sentence and colour, leads to it, and says it no more once it is
mended."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg2
import pytest
from playwright.sync_api import Locator, Page, expect

import weir
from tests.conftest import TestDatabase
from tests.crash.jobs import Process, process, wait_for, write_config
from tests.pages.conftest import Served, look
from tests.small_disk import fill, mounted
from tests.world.streams import rows
from weir.database.connection import Database
from weir.errors import WeirError
from weir.operations.jobs import ACTIONS
from weir.retention.capture import capture
from weir.settings import Settings

pytestmark = pytest.mark.timeout(1800)

ROWS = [{"customer": f"C{n}", "n": n} for n in range(1000)]
COLOURS = {"red": "rgb(192, 41, 47)", "amber": "rgb(154, 91, 0)"}
READER = """
import time, weir
with weir.open() as store:
    for batch in store.reader("visits", reader_id="till 7"):
        print("reads", flush=True)
        time.sleep(600)
"""


@dataclass(frozen=True)
class Wrong:
    """How the page says that something is wrong, where it leads, and how its form begins."""

    colour: str
    sentence: str  # a pattern
    link: str = ""
    shows: str = ""  # what the page has that the link opens
    form: str = ""
    filled: Mapping[str, str] = field(default_factory=dict)  # by the titles of fields


STUCK = Wrong(
    "red", "run monday of shop .process. gives no sign of life", "The run", "no sign of life"
)
FROZEN = Wrong(
    "red", "Reader shop/monday/process of reader group orders died over 1,000 events",
    "The reader group", "expired", "Process", {"Reader group": "orders"},
)  # fmt: skip
KILLED = Wrong(
    "red", "Reader till 7 of reader group visits died over 1,000 events", "The reader group",
    "till 7", "Process", {"Reader group": "visits"},
)  # fmt: skip
FAILED = Wrong(
    "red", "run tuesday of shop .process. failed: .*KeyError: 'price'", "The run", "price"
)
QUIT = Wrong(
    "red", "Reader shop/tuesday/process of reader group refunds died over 1,000 events",
    "The reader group", "was ended", "Process", {"Reader group": "refunds"},
)  # fmt: skip
FULL = Wrong("red", r"The disk of \S+lake has 0 % left", "Retention", "shop/kept")
NOT_PUBLISHED = Wrong(
    "red", "table of stream shop/published was not published: .*No space left", "The stream",
    "shop/published", "Publish", {"Streams": "shop/published"},
)  # fmt: skip
OLD = Wrong("amber", r"A transaction of session \d+ of weir_owner .* has been open for long")
MISSING = Wrong(
    "amber", "The hour until .* of stream shop/hourly never came", "The stream", "Complete until"
)
DAMAGED = Wrong(
    "red", "1 file of stream shop/returns is not as recorded", "Its files", "0 – 999", "Verify",
    {"Stream": "shop/returns"},
)  # fmt: skip
LOST = Wrong(
    "red", "Subscriber kept lost 1,?000 unread events of stream shop/kept", "The stream",
    "lost unread events", "Update stream", {"Stream": "shop/kept"},
)  # fmt: skip
SOON_LOST = Wrong("amber", "retention will truncate events of stream shop/kept", "The stream")
BY_HAND = Wrong("amber", r"by hand .verify. failed: 1 finding", "The run", "1 finding")
ALL = [
    STUCK, FROZEN, KILLED, FAILED, QUIT, FULL, NOT_PUBLISHED, OLD, MISSING, DAMAGED, LOST,
    SOON_LOST, BY_HAND,
]  # fmt: skip


LATE = Wrong(
    "amber", "Nobody reads for group late: 1,000 events wait", "The reader group", "No reader",
    "Process", {"Reader group": "late"},
)  # fmt: skip


def are_told(database: Database, *those: Wrong) -> bool:
    """Return whether the view has all of these, after a second: who waits asks in minutes."""
    time.sleep(1)
    said = [row.sentence for row in rows(database, "SELECT sentence FROM weir.troubles")]
    return all(any(re.search(one.sentence, text) for text in said) for one in those)


def found(page: Page, one: Wrong) -> Locator:
    return page.locator(".trouble").filter(has_text=re.compile(one.sentence))


def tell(page: Page, address: str, one: Wrong) -> None:
    """See what the page says of it, and follow it to where it is shown, and to its form."""
    page.goto(address)
    told = found(page, one)
    expect(told).to_have_count(1)
    expect(told.get_by_role("img", name=one.colour)).to_have_css(
        "background-color", COLOURS[one.colour]
    )
    if one.link:
        told.get_by_role("link", name=one.link, exact=True).click()
        expect(page.locator("main")).to_contain_text(one.shows)
        page.goto(address)
    if one.form:
        told.get_by_role("link", name=one.form).click()
        for title, value in one.filled.items():
            expect(page.get_by_label(re.compile(rf"^{title}( \*)?$"))).to_have_value(value)
        expect(page.locator(".error:visible")).to_have_count(0)


def gone(page: Page, address: str, *mended: Wrong) -> None:
    """See that the page says these no more, and that its number is of what it says."""
    page.goto(address)
    expect(page.locator(".shown")).to_have_attribute("aria-busy", "false")
    for one in mended:
        expect(found(page, one)).to_have_count(0)
    if left := page.locator(".trouble").count():
        expect(page.locator(".count")).to_have_text(str(left))
    else:
        expect(page.locator(".count")).to_be_hidden()
        expect(page.locator("main")).to_contain_text("Nothing is wrong.")


def consumer(config: Path, run: str, function: str, group: str) -> AbstractContextManager[Process]:
    """Return a context with a task of Airflow's that reads a group."""
    run_id = {"dag_id": "shop", "run_id": run, "task_id": "process"}
    given = {
        "reader_group": group, "function": f"tests.crash.functions:{function}",
        "engine": "pyarrow", "outputs": [f"parquet:{group}"],
    }  # fmt: skip
    command = [sys.executable, ACTIONS["process"].file, "--run", json.dumps(run_id)]
    return process(
        [*command, "--arguments", json.dumps(given)], config, WEIR_TEST_WAIT=str(config.parent)
    )


@pytest.mark.release
def test_what_goes_wrong_is_told_in_its_colour_until_it_is_mended(
    page: Page, served: Served, settings: Settings, database: Database,
    test_database: TestDatabase, tmp_path: Path,
) -> None:  # fmt: skip
    with (
        mounted(tmp_path / "disk", "4m") as disk,
        closing(psycopg2.connect(test_database.owner_dsn)) as other,
    ):
        there = replace(settings, state=disk, warehouse=str(disk / "lake"), reader_lease=2.0)
        config = write_config(there)
        with weir.open(settings=there) as store:
            # The stream keeps less than its reader needs.
            store.create_stream("shop/kept", "customer", retention="size", retain_max_bytes="1 kB")
            store.create_reader_group("kept", ["shop/kept"])
            store.append("shop/kept", ROWS)
            capture(database)
            store.append("shop/kept", ROWS)
            store.retention()
            store.append("shop/kept", ROWS)
            for name in ("orders", "refunds", "visits", "returns"):
                store.create_stream(f"shop/{name}", "customer")
                store.append(f"shop/{name}", ROWS)
            for name in ("orders", "refunds", "visits"):
                store.create_reader_group(name, [f"shop/{name}"])
            with consumer(config, "monday", "held", "orders") as stuck:
                wait_for("a run that reads", (disk / "here").exists)
                stuck.stop()
                other.cursor().execute("SELECT pg_current_xact_id()")
                store.create_stream("shop/published", "customer", publish="iceberg")
                store.append("shop/published", ROWS)
                kill_a_reader(config)
                with consumer(config, "tuesday", "unmended", "refunds") as failed:
                    assert failed.wait() == 1
                # No writer has come for hours.
                store.create_stream("shop/hourly", "customer", event_time="at")
                at = datetime.now(UTC)
                store.append(
                    "shop/hourly", [{"customer": "C1", "at": at - timedelta(hours=5)}],
                    writer_id="till", complete_until=at - timedelta(hours=5),
                )  # fmt: skip
                rows(database, "SELECT watch_streams('airflow', '{hours}', '{shop/hourly}')")
                [[path]] = rows(
                    database, "SELECT path FROM weir.data_files WHERE stream = 'shop/returns'"
                )
                file = Path(there.warehouse, path)
                right = file.read_bytes()
                file.write_bytes(right[:2000] + bytes([right[2000] ^ 1]) + right[2001:])
                with pytest.raises(WeirError):
                    store.verify(stream="shop/returns", engine="pyarrow")
                fill(disk)
                with suppress(WeirError):
                    store.upkeep()

                wait_for("two minutes without a sign of life", lambda: are_told(database, *ALL))
                for one in ALL:
                    tell(page, served.address, one)
                page.goto(served.address)
                expect(page.locator(".count.red")).to_be_visible()
                look(page, "now-made-wrong")

                (disk / "filler").unlink()
                store.upkeep()
                gone(page, served.address, FULL, NOT_PUBLISHED)
                (disk / "go").touch()
                stuck.go_on()
                assert stuck.wait() == 0
                gone(page, served.address, STUCK, FROZEN)
            for batch in store.reader("visits"):
                batch.commit({})
            gone(page, served.address, KILLED)
            (disk / "mended").touch()
            with consumer(config, "wednesday", "unmended", "refunds") as again:
                assert again.wait() == 0
            gone(page, served.address, FAILED, QUIT)
            other.rollback()
            gone(page, served.address, OLD)
            hour = at.replace(minute=0, second=0, microsecond=0)
            store.append("shop/hourly", [{"customer": "C1", "at": hour}], writer_id="till",
                         complete_until=hour)  # fmt: skip
            gone(page, served.address, MISSING)
            file.write_bytes(right)
            store.verify(stream="shop/returns", engine="pyarrow")
            gone(page, served.address, DAMAGED, BY_HAND)
            store.update_stream("shop/kept", retention="keep", retain_max_bytes="none")
            gone(page, served.address, SOON_LOST)
            store.delete_reader_group("kept")
            store.seal_stream("shop/kept")
            store.delete_stream("shop/kept")
            gone(page, served.address, LOST)
            expect(page.locator("main")).to_contain_text("Nothing is wrong.")


@pytest.mark.soak  # ten minutes are the patience with a new group
def test_a_group_that_nobody_reads_is_told_until_somebody_does(
    page: Page, served: Served, settings: Settings, database: Database
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "customer")
        store.create_reader_group("late", ["shop/orders"])
        store.append("shop/orders", ROWS)
        wait_for("ten minutes", lambda: are_told(database, LATE), 900)
        tell(page, served.address, LATE)
        for batch in store.reader("late"):
            batch.commit({})
        gone(page, served.address, LATE)


def kill_a_reader(config: Path) -> None:
    """Let a program read a batch, and kill it."""
    given = os.environ | {"WEIR_CONFIG": str(config), "PYTHONPATH": "plugins"}
    with subprocess.Popen(
        [sys.executable, "-c", READER], stdout=subprocess.PIPE, env=given
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"reads\n"
        reader.send_signal(signal.SIGKILL)
