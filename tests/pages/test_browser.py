"""The pages in a real browser: what is seen, typed and followed, and that nothing of it is code."""

import json
from datetime import datetime
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, look
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_start
from weir.settings import Settings

pytestmark = pytest.mark.server
SPARK = "http://localhost:4040"
LONG = f"shop/{'long-' * 11}name"


def test_an_empty_store_says_what_to_do_next(page: Page, served: Served) -> None:
    page.goto(f"{served.address}/streams")
    expect(page.locator("main")).to_contain_text("There is no stream yet.")
    expect(page.locator("main")).to_contain_text("weir_create_stream")
    page.get_by_role("link", name="Reader groups").click()
    expect(page.locator("main")).to_contain_text("There is no reader group yet.")
    page.goto(f"{served.address}/stream?name=no/such")
    expect(page.get_by_role("alert")).to_contain_text("There is no stream no/such.")
    assert served.said.pop().startswith("Failed to load resource")  # the browser's word for a 404


def test_one_follows_links_from_the_list_to_a_stream_its_group_and_back(
    page: Page, served: Served, database: Database
) -> None:
    orders = Lane.made(database, 2, name=LONG)
    Lane.made(database, 1, name="nyc/flights")
    group = Group.made(orders)
    orders.append({"0.0": 40, "1.0": 2})
    orders.scale("0.0", parts=2)
    page.goto(f"{served.address}/streams")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text(f"{group.name} has 42 events to read")
    look(page, "streams")
    page.keyboard.press("/")
    page.keyboard.type("LONG")
    expect(rows).to_have_count(1)
    assert "search=LONG" in page.url
    page.reload()
    expect(rows).to_have_count(1)
    page.locator("main").focus()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(LONG)
    expect(page.locator(".chart canvas")).to_be_visible()
    expect(page.locator(".facts")).to_contain_text("42")
    look(page, "stream")
    page.get_by_role("link", name=group.name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(group.name)
    expect(page.locator(".facts")).to_contain_text("42")
    look(page, "group")
    page.get_by_role("link", name="Reader groups").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    look(page, "groups")
    page.get_by_role("link", name=group.name).click()
    page.get_by_role("link", name=LONG).first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(LONG)


def test_markup_that_people_wrote_stays_text(
    page: Page, served: Served, database: Database
) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    run(
        database, "UPDATE stream SET tags = ARRAY[CAST(:evil AS text)], routing_key = :evil",
        evil=EVIL,
    )  # fmt: skip
    lane.append({"0.0": 1}, writer=EVIL, source=EVIL)
    task = RunId("dag", EVIL, "task")
    database.transaction(lambda c: record_start(c, task, "scale_stream", {"stream": EVIL}))
    database.transaction(
        lambda c: record_end(
            c, task, "failed", report={EVIL: [EVIL, {EVIL: 1}], "spark_pages": SPARK}, error=EVIL
        )
    )
    for path in (
        "/streams", "/stream?name=shop/orders", f"/stream?name={EVIL.replace('/', '%2f')}",
        f"/group?name={EVIL}", f"/streams?search={EVIL}", f"/streams?tag={EVIL}",
        f"/run?dag_id=dag&run_id={EVIL}&task_id=task", f"/run?dag_id={EVIL}&run_id={EVIL}",
        *(f"/{of}?name={quote(EVIL)}" for of in ("events", "files", "store")),
        *(f"/{of}={quote(EVIL)}" for of in ("table?of", "time?of", "lineage?group", "act?action")),
        f"/events?name=shop/orders&key={quote(EVIL)}&condition={quote(EVIL)}",
        f"/act?action=create_stream&given={quote(json.dumps({'stream': EVIL}))}",
    ):  # fmt: skip
        page.goto(served.address + path)
        expect(page.locator(".shown")).to_have_attribute("aria-busy", "false")
        assert page.locator("main img, main script").count() == 0, path
        assert page.evaluate("document.title") != "evil", path
    page.goto(f"{served.address}/run?dag_id=dag&run_id={EVIL}&task_id=task")
    expect(page.locator(".shown .error")).to_have_text(EVIL)
    expect(page.get_by_role("link", name=SPARK)).to_have_attribute("href", SPARK)
    served.said[:] = [one for one in served.said if "Failed to load resource" not in one]


def test_a_database_that_goes_away_leaves_what_was_there_and_says_so(
    page: Page, served: Served, database: Database
) -> None:
    Lane.made(database, 1, name="shop/orders")
    page.goto(f"{served.address}/streams")
    expect(page.locator("tbody tr")).to_have_count(1)
    there, served.shown.settings = served.shown.settings, Settings(database="host=127.0.0.1 port=1")
    page.get_by_role("button", name="Refresh").click()
    expect(page.get_by_role("alert")).to_contain_text("can't be reached")
    expect(page.locator("tbody tr")).to_have_count(1)
    served.shown.settings = there
    page.keyboard.press("r")
    expect(page.get_by_role("alert")).to_be_hidden()
    served.said[:] = [one for one in served.said if "503" not in one]


def test_what_changes_is_shown_without_losing_the_place(
    page: Page, served: Served, database: Database
) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    Lane.made(database, 1, name="shop/refunds")
    page.clock.set_fixed_time(datetime.now())  # a new minute redraws
    page.goto(f"{served.address}/streams")
    expect(page.locator("tbody tr")).to_have_count(2)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.evaluate("window.kept = document.querySelector('table')")
    page.keyboard.press("r")
    expect(page.locator(".shown")).to_have_attribute("aria-busy", "false")
    assert page.evaluate("window.kept === document.querySelector('table')")
    lane.append({"0.0": 7})
    page.keyboard.press("r")
    expect(page.locator("tbody tr").first).to_contain_text("7 events")
    assert page.evaluate("document.activeElement.dataset.key") == "shop/refunds"


def test_rates_beside_each_other_are_said_in_one_unit(page: Page, served: Served) -> None:
    page.goto(f"{served.address}/streams")
    said = page.evaluate(
        """() => import("./assets/js/parts.js").then(({ perSecond }) =>
            [[0.01, 0.012], [0.012, 0.012], [0.5, 20], [20, 20]].map((one) => perSecond(...one)))"""
    )
    assert said == ["36/h", "43/h", "0.50/s", "20/s"]
