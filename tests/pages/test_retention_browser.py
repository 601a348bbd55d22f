"""The page of retention in a real browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import Served, picture
from tests.pages.test_retention import limited
from tests.world.groups import Group
from tests.world.retention import consume
from tests.world.streams import Lane
from weir.database.connection import Database

pytestmark = pytest.mark.server


def test_the_page_of_retention_has_who_loses_first_and_looks_at_all_streams(
    page: Page, served: Served, database: Database
) -> None:
    page.goto(f"{served.address}/streams")
    page.get_by_role("link", name="Retention").click()
    expect(page.locator("main")).to_contain_text("There is nothing to decide")
    for i in range(22):  # more than one answer has
        lane = Lane.made(database, 1, name=f"a/s{i:02}", retention="consumed")
        group = Group.made(lane)
        lane.append({"0.0": 3})
        if i:
            consume(group)
    lane, group = limited(database, "z/limited", 7)
    page.keyboard.press("r")
    expect(page.locator(".facts")).to_contain_text("23 of 23")
    expect(page.locator("main")).to_contain_text("groups would lose 7 unread events of 1 stream")
    first = page.locator("tbody tr").first
    expect(first).to_contain_text("z/limited")
    expect(first).to_contain_text(f"{group.name} 7")
    picture(page, "retention")
    first.get_by_role("link", name=group.name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(group.name)
