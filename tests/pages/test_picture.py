"""A picture in a file is the map of the page, in a real browser, with nothing to load."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, look
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.pages.picture import picture_of, seen
from weir.pages.shells import in_one_file

pytestmark = pytest.mark.server


def opened(page: Page, text: str, folder: Path) -> list[str]:
    """Open a picture as a file, and return what it asks for from then on."""
    file = folder / "map.html"
    file.write_text(text, encoding="utf-8")
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.goto(file.as_uri())
    return asked


def test_a_picture_of_a_stream_is_its_map_and_needs_no_server(
    page: Page, served: Served, database: Database, tmp_path: Path
) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    group = Group.made(lane)
    lane.append({"0.0": 40, "1.0": 2})
    run(database, "UPDATE epoch SET created_at = created_at - 3600000000")
    low, _ = lane.scale("0.0", parts=2)
    lane.append({low: 7})
    text = picture_of(database, "shop/orders")
    assert len(text) < 300_000
    asked = opened(page, text, tmp_path)
    expect(page.get_by_role("heading", level=1)).to_have_text("shop/orders")
    drawn, says = page.locator(".map"), page.locator(".map-says")
    expect(drawn.locator("[data-area]")).to_have_count(4)
    expect(drawn.locator(".mark.scale")).to_have_count(1)
    expect(page.get_by_role("checkbox", name=group.name)).to_be_checked()
    expect(page.locator(".chart canvas")).to_have_count(1)
    box = drawn.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 200, box["y"] + 60)
    expect(says).to_contain_text("Segment 1.0, keys 0.5 – 1: 2 events; ")
    expect(says).to_contain_text(re.compile(f"Here: the head at .*, {group.name} at "))
    whole = drawn.locator(".when").all_text_contents()
    drawn.focus()
    page.keyboard.press("+")
    expect(drawn.locator(".when").first).not_to_have_text(whole[0])
    page.get_by_role("button", name="Show all").click()
    expect(drawn.locator(".when").first).to_have_text(whole[0])
    assert page.locator("a").count() == 0, "it is no place to act"
    page.emulate_media(color_scheme="dark")
    expect(page.locator("html")).to_have_attribute("data-mode", "dark")
    look(page, "in-a-file")
    assert [one for one in asked if not one.startswith(("file:", "data:"))] == []


def test_a_picture_of_a_group_is_what_it_had_not_read(
    page: Page, served: Served, database: Database, tmp_path: Path
) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane)
    lane.append({"0.0": 7})
    opened(page, picture_of(database, group.name), tmp_path)
    chart = page.get_by_role("img", name="Unread events of shop/orders over time, 7 now")
    expect(chart.locator("canvas")).to_be_visible()


def test_a_picture_shows_a_part_of_the_time(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    run(database, "UPDATE epoch SET created_at = created_at - 7200000000")
    [[since]] = lane.rows("SELECT to_char(now() - interval '1 hour', 'YYYY-MM-DD HH24:MI:SS')")
    shown = seen(database, "shop/orders", since=since).map
    assert shown is not None
    assert f"{shown.since:%Y-%m-%d %H:%M:%S}" == since
    with raises("time_invalid nothing"):
        picture_of(database, "shop/orders", until="2001-01-01")


def test_markup_in_a_picture_stays_text(page: Page, served: Served, tmp_path: Path) -> None:
    none: dict[str, object] = {
        "of": EVIL,
        "at": "2026-01-01",
        "map": None,
        "kept": None,
        "unread": [],
    }
    opened(page, in_one_file("picture", json.dumps(none)), tmp_path)
    expect(page.get_by_role("heading", level=1)).to_have_text(EVIL)
    assert page.title() != "evil"
    assert page.locator("main img").count() == 0


@pytest.mark.parametrize(
    ("of", "code"),
    [
        ("no/such", "stream_not_found"), ("nobody", "group_not_found"),
        ("<b>/x", "name_invalid stream"), ("<b>", "name_invalid group"),
    ],
)  # fmt: skip
def test_what_is_not_there_has_no_picture(database: Database, of: str, code: str) -> None:
    with raises(code):
        picture_of(database, of)
