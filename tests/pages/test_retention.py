"""What the next run of retention would do, as JSON and in a browser."""

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.pages.conftest import Served, look, pages, told
from tests.world.groups import Group
from tests.world.retention import consume
from tests.world.streams import Lane, rows
from weir.database.connection import Database
from weir.retention.capture import capture
from weir.retention.run import retain


def limited(database: Database, name: str, events: int) -> tuple[Lane, Group]:
    """Return a stream from which so many events would go, and a group that has not read them."""
    lane = Lane.made(database, 1, name=name, retention="size", retain_max_bytes=10)
    group = Group.made(lane)
    lane.append({"0.0": events})
    capture(database)
    lane.append({"0.0": 1})
    capture(database)
    return lane, group


def test_it_says_what_the_run_then_does(client: TestClient, database: Database) -> None:
    lane, group = limited(database, "shop/orders", 5)
    found = told(client, "retention")
    [decision] = found["decisions"]
    assert (found["due"], found["limited"], found["next"]) == (1, 1, None)
    assert (decision["stream"], decision["rule"]) == (str(lane.name), "max_bytes")
    assert "maximum size" in decision["reason"]
    assert (decision["events"], decision["bytes"]) == (5, 50)
    assert decision["lost"] == {group.name: 5}
    [report] = retain(database)
    assert (report["events"], report["lost"]) == (decision["events"], decision["lost"])
    assert rows(database, "SELECT lost_events FROM lag")[0].lost_events == 5


def test_pages_have_each_stream_once_those_with_a_maximum_first(
    client: TestClient, database: Database
) -> None:
    for i in range(4):
        lane = Lane.made(database, 1, name=f"a/s{i}", retention="consumed")
        consume(Group.made(lane))
    for i in range(3):
        limited(database, f"b/s{i}", 2)
    answers = list(pages(client, "retention", limit=2))
    assert [(one["due"], one["limited"]) for one in answers] == [(7, 3)] * 4
    found = [row["stream"] for one in answers for row in one["decisions"]]
    assert found == [f"b/s{i}" for i in range(3)] + [f"a/s{i}" for i in range(4)]


@pytest.mark.server
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
    look(page, "retention")
    first.get_by_role("link", name=group.name).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(group.name)
