"""The key space of a stream over time, as JSON and in a browser. Its rules are tested in
tests/pages/test_stream_map.py."""

import json
import re
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.pages.conftest import Served, told
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database


def test_a_group_that_has_read_all_stands_at_the_end(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 2)
    group = Group.made(lane)
    lane.append({"0.0": 3, "1.0": 3})
    group.reader().read_all()
    found = told(client, f"streams/{lane.name}/map")
    [point] = found["lines"][1]["points"]
    assert (point["key_low"], point["key_high"], point["at"]) == (0, 1, found["ends"])


def test_an_unchanged_map_is_not_sent_again(client: TestClient, database: Database) -> None:
    lane = Lane.made(database)
    path = f"/api/streams/{lane.name}/map"
    until = told(client, f"streams/{lane.name}/map")["until"]
    tag = client.get(path, params={"until": until}).headers["etag"]
    again = client.get(path, params={"until": until}, headers={"If-None-Match": tag})
    assert again.status_code == 304


@pytest.mark.server
def test_a_map_of_a_stream_says_numbers_where_one_points_and_zooms(
    page: Page, served: Served, database: Database
) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    group = Group.made(lane)
    page.goto(f"{served.address}/stream?name={lane.name}")
    expect(page.locator("main")).to_contain_text("their rates are colours here")
    lane.append({"0.0": 40, "1.0": 2})
    run(database, "UPDATE epoch SET created_at = created_at - 3600000000")
    low, _ = lane.scale("0.0", parts=2)
    lane.append({low: 7})
    page.reload()
    drawn, says = page.locator(".map"), page.locator(".map-says")
    expect(drawn.locator("[data-area]")).to_have_count(4)
    expect(drawn.locator(".mark.scale")).to_have_count(1)
    drawn.scroll_into_view_if_needed()
    box = drawn.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    expect(says).to_contain_text("Segment 1.0, keys 0.5 – 1: 2 events; ")
    expect(says).to_contain_text(re.compile(f"Here: the head at .*, {group.name} at "))
    expect(drawn.locator(".chosen")).to_have_count(1)
    expect(says.get_by_role("link")).to_have_text(["Scale it"])
    page.mouse.click(box["x"] + 200, box["y"] + 60)
    page.mouse.move(box["x"] + 300, box["y"] - 60)
    wanted = ["Scale it", "Truncate up to here", "Read from here with a new group"]
    expect(says.get_by_role("link")).to_have_text(wanted)
    scale = says.get_by_role("link", name="Scale it").get_attribute("href")
    assert json.loads(parse_qs(urlsplit(str(scale)).query)["given"][0]) == {
        "stream": "shop/orders", "segments": ["1.0"],
    }  # fmt: skip
    drawn.focus()
    page.keyboard.press("Escape")
    expect(says.get_by_role("link")).to_have_count(0)
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    positions = drawn.locator(".position").count()
    page.get_by_role("checkbox", name=group.name).uncheck()
    expect(drawn.locator(".position")).to_have_count(positions - 1)
    expect(says).not_to_contain_text(group.name)
    times = drawn.locator(".when")
    whole = times.all_text_contents()
    for zoom in (wheel, lambda page: page.keyboard.press("+")):
        drawn.focus()
        with page.expect_response(lambda one: "/map?since=" in one.url):
            zoom(page)
        expect(times.first).not_to_have_text(whole[0])
        with page.expect_response(lambda one: "/map?since=" in one.url):
            page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowUp")
        expect(says).to_contain_text("at most")
        page.get_by_role("button", name="Show all").click()
        expect(times.first).to_have_text(whole[0])
    page.get_by_text("The map as tables").click()
    expect(page.get_by_role("table", name="Segments")).to_contain_text("40")
    expect(page.get_by_role("table", name="Positions")).to_contain_text(group.name)


def wheel(page: Page) -> None:
    """Turn the wheel over the map, with Ctrl."""
    page.locator(".map").hover()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
