"""The list of runs in a real browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, picture
from tests.pages.test_newest_runs import record
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.history.job_runs import RunId

pytestmark = pytest.mark.server


def test_the_list_of_runs_is_filtered_and_leads_to_what_a_run_did(
    page: Page, served: Served, database: Database
) -> None:
    page.goto(f"{served.address}/streams")
    page.get_by_role("link", name="Runs").click()
    expect(page.locator("main")).to_contain_text("No job of Weir has run yet.")
    lane = Lane.made(database, name="shop/orders")
    lane.append({"0.0": 40, "1.0": 2})
    group = Group.made(lane)
    reading = RunId("shop_totals", "scheduled__2026-11-27T01:00:00+00:00", "process", 1)
    record(database, reading, report={"reader_group": group.name})
    reader = group.reader(str(reading))
    reader.commit(reader.must_open())
    given = {"stream": "shop/orders", "events": 42}
    record(database, RunId("shop_load", "manual__1", "ingest"), "ingest", report=given)
    record(database, RunId("weir_upkeep", "scheduled__1", "upkeep"), "upkeep")
    broken = RunId("shop_load", EVIL, "ingest", try_number=2)
    record(database, broken, "ingest", "failed", error=f"no file {EVIL}", arguments=given)
    page.keyboard.press("r")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(4)
    expect(rows.first).to_contain_text(f"no file {EVIL}")
    expect(rows.nth(3)).to_contain_text("read 42 events in 1 batch")
    assert page.locator("main img").count() == 0
    picture(page, "runs")
    page.get_by_label("Action").select_option("but upkeep")
    expect(rows).to_have_count(3)
    page.get_by_label("Action").select_option("ingest")
    page.get_by_label("State").select_option("failed")
    expect(rows).to_have_count(1)
    page.reload()  # the address has the filters
    expect(rows).to_have_count(1)
    page.get_by_label("State").select_option("")
    page.get_by_label("Action").select_option("")
    page.get_by_role("searchbox", name="Reader group").fill(group.name)
    page.keyboard.press("Enter")
    expect(rows).to_have_count(1)
    rows.get_by_role("link", name="process").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("shop_totals · process")
    expect(page.locator("main")).to_contain_text("Read: 42 events")
