"""The graph of lineage in a real browser."""

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, picture
from tests.pages.test_lineage import chain
from tests.world.groups import Group
from weir.database.connection import Database

pytestmark = pytest.mark.server
# Whether all boxes are in the picture, and none lies on another.
APART = """() => {
    const of = (one) => one.getBoundingClientRect();
    const all = document.querySelector(".graph svg");
    const boxes = [...all.querySelectorAll(".node rect")].map(of);
    const inside = (a, b) => a.x >= b.x && a.y >= b.y && a.right <= b.right && a.bottom <= b.bottom;
    const meet = (a, b) => a.x < b.right && b.x < a.right && a.y < b.bottom && b.y < a.bottom;
    return [boxes.every((one) => inside(one, of(all))),
            boxes.every((a, i) => boxes.every((b, j) => i === j || !meet(a, b)))];
}"""


def test_the_graph_leads_from_a_stream_to_what_was_made_of_it_also_as_a_list(
    page: Page, served: Served, database: Database
) -> None:
    first, group, second, _ = chain(database)
    Group.made(first, second)
    first.append({"0.0": 1}, source=EVIL)
    page.goto(f"{served.address}/stream?name={first.name}")
    page.get_by_role("link", name="Lineage").click()
    nodes = page.locator(".graph .node")
    expect(nodes).to_have_count(8)
    expect(page.locator(".graph")).to_contain_text("shop/totals")
    expect(page.locator("tbody")).to_contain_text(EVIL)
    assert page.locator("main img").count() == 0
    apart = page.evaluate(APART)
    assert apart == [True, True]
    picture(page, "lineage")
    for width in (1280, 400):  # what it is about is in sight
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        expect(page.locator(".graph .here")).to_be_in_viewport(ratio=1)
    page.set_viewport_size({"width": 1280, "height": 900})
    page.get_by_label("How far").select_option("1")
    expect(nodes).to_have_count(6)
    page.get_by_label("How far").select_option("4")
    expect(nodes).to_have_count(8)
    box = page.locator(".graph a.group").filter(has_text=group.name).first
    box.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(group.name)
    page.goto(f"{served.address}/lineage?stream={second.name}&segment=0.0&offset=0")
    expect(page.get_by_role("heading", level=1)).to_contain_text("row 0 of segment 0.0")
    expect(page.locator(".graph .events").first).to_be_visible()
    picture(page, "lineage-row")
