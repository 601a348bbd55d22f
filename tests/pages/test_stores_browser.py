"""The pages of adjunct stores in a real browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, picture
from tests.pages.test_stores import written
from tests.world.adjunct import Store
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.settings import Settings

pytestmark = pytest.mark.server


def test_a_store_is_found_and_a_key_is_looked_up_in_its_versions(
    page: Page, served: Served, database: Database, settings: Settings
) -> None:
    page.goto(f"{served.address}/streams")
    page.get_by_role("link", name="Adjunct stores").click()
    expect(page.locator("main")).to_contain_text("There is no adjunct store yet")
    lane = Lane.made(database, 1, name="shop/customers")
    lane.append({"0.0": 5})
    store = Store.made(lane)
    written(settings, store, {"ann": EVIL, "bob": None})
    lane.append({"0.0": 2})
    page.keyboard.press("r")
    expect(page.locator("tbody tr")).to_contain_text("2 events behind")
    picture(page, "stores")
    page.get_by_role("link", name=store.name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(store.name)
    expect(page.locator("main")).to_contain_text("published")
    page.get_by_label("Key").fill("ann")
    page.keyboard.press("Enter")
    expect(page.locator("main [role=status]")).to_contain_text(EVIL)
    assert page.locator("main img").count() == 0
    picture(page, "store")
    page.get_by_label("Key").fill("carl")
    page.get_by_role("button", name="Look up").click()
    expect(page.locator("main [role=status]")).to_contain_text("the newest version has no key carl")
    page.get_by_role("spinbutton", name="Version").fill("7")
    page.get_by_role("button", name="Look up").click()
    expect(page.get_by_role("alert")).to_contain_text("7")
    served.said[:] = [one for one in served.said if "404" not in one]
