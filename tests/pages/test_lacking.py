"""Addresses that name nothing: what the pages say in a browser, and that no form begins in red."""

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import Served, look
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_start
from weir.pages.app import PAGES

pytestmark = pytest.mark.server
LISTS = {"now", "streams", "groups", "runs", "retention", "stores", "tables", "time"}
SENTENCE = f"{'the file has rows that do not fit the schema, ' * 12}mend them, then say so."


def test_a_page_without_what_it_is_about_says_so_and_where_to_find_it(
    page: Page, served: Served
) -> None:
    for name in sorted(set(PAGES) - LISTS):
        page.goto(f"{served.address}/{name}")
        expect(page.locator(".empty")).to_contain_text("and its address names none.")
        expect(page.locator("main a")).to_have_count(1)
        expect(page.locator("main form, main button")).to_have_count(0)
    page.goto(f"{served.address}/time")
    expect(page.locator(".empty")).to_contain_text("There is no reader group yet.")
    for name in ("stream", "files", "events", "store"):
        page.goto(f"{served.address}/{name}?name=orders")
        expect(page.locator(".empty")).to_contain_text("its name has two parts")
    page.locator("main a").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Adjunct stores")


def test_an_address_that_no_page_has_is_a_page_that_says_so(page: Page, served: Served) -> None:
    for path in ("nothing", "stream/shop/orders"):
        answer = page.goto(f"{served.address}/{path}")
        assert answer is not None
        assert answer.status == 404
        expect(page.locator(".empty")).to_contain_text("No page of Weir has this address.")
    look(page, "missing")
    served.said[:] = [one for one in served.said if "404" not in one]


def test_a_form_that_nobody_has_filled_in_is_not_wrong_yet(page: Page, served: Served) -> None:
    page.goto(f"{served.address}/act?action=scale_stream")
    expect(page.locator(".shown")).to_contain_text("Still to be filled in: Stream")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.keyboard.press("r")
    expect(page.locator(".shown")).to_contain_text("Still to be filled in: Stream")
    page.get_by_label("Stream").fill("no stream <b>")
    page.get_by_label("Segments to replace").fill("0.0")
    expect(page.get_by_role("alert").last).to_contain_text("no stream <b>")


def test_a_sentence_is_read_to_its_end_on_a_screen_of_1440(
    page: Page, served: Served, database: Database
) -> None:
    Lane.made(database, 1, name="shop/orders")
    task = RunId("weir_ingest", "manual__2026-11-27T09:00:00.123456+00:00_Ab12Cd34", "ingest")
    database.transaction(lambda c: record_start(c, task, "ingest", {"stream": "shop/orders"}))
    database.transaction(lambda c: record_end(c, task, "failed", error=SENTENCE))
    page.set_viewport_size({"width": 1440, "height": 900})
    page.goto(f"{served.address}/runs")
    expect(page.locator("tbody")).to_contain_text("then say so.")
    wide, room = page.evaluate(
        "() => (({ scrollWidth, clientWidth }) => [scrollWidth, clientWidth])"
        "(document.querySelector('.scroll'))"
    )
    assert wide <= room
