"""What a reader group has done over time, and what it costs."""

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.pages.conftest import Served, look
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database


def read_some(database: Database, batches: int) -> Group:
    """A subscriber that has read so many batches of ten events, and has one more to read."""
    lane = Lane.made(database, 1, name="shop/orders", retention="consumed")
    group = Group.made(lane, subscriber=True)
    reader = group.reader()
    for _ in range(batches):
        lane.append({"0.0": 10})
        reader.commit(reader.must_open())
    lane.append({"0.0": 10})
    return group


def test_batches_that_have_ended_are_there_oldest_first(
    client: TestClient, database: Database
) -> None:
    group = read_some(database, 3)
    run(database, "UPDATE reader_batch SET attempt = 2 WHERE batch_id = 2")
    body = client.get(f"/api/groups/{group.name}/work").json()
    assert [one["events"] for one in body["batches"]] == [10, 10, 10]
    assert [one["attempt"] for one in body["batches"]] == [1, 2, 1]
    opened = [one["opened_at"] for one in body["batches"]]
    assert opened == sorted(opened)


def test_what_was_unread_is_not_counted_back_over_very_many_appends(
    client: TestClient, database: Database
) -> None:
    group = read_some(database, 3)
    address = f"/api/groups/{group.name}/work"
    [before] = client.get(address).json()["unread"]
    run(
        database,
        """INSERT INTO transaction (stream_id, transaction_number, stream_name, writer_id, batch_id,
            fingerprint, allow_repeated_files, source, state, epoch, opened_at, lease_until,
            ended_at)
        SELECT stream_id, i, stream_name, 'w', i::text, '', false, '', 'aborted', 0, now(), now(),
            now()
        FROM stream, generate_series(5, 20100) i""",
    )
    run(database, "UPDATE stream SET next_transaction_number = 20101")
    [unread] = client.get(address).json()["unread"]
    assert unread["at"][0] > before["at"][0]
    assert unread["events"][-1] == 10


def test_what_a_group_costs_is_added_up(client: TestClient, database: Database) -> None:
    group = read_some(database, 3)
    [cost] = client.get(f"/api/groups/{group.name}/cost").json()["costs"]
    assert (cost["batches"], cost["events"]) == (3, 30)
    assert cost["kept_bytes"] > 0
    assert cost["kept_alone_bytes"] == cost["kept_bytes"]


@pytest.mark.server
def test_one_sees_a_groups_batches_over_time_and_its_cost(
    page: Page, served: Served, database: Database
) -> None:
    group = read_some(database, 12)
    run(
        database,
        "UPDATE reader_batch SET opened_at = now() - (13 - batch_id) * interval '9 minutes', "
        "ended_at = now() - (13 - batch_id) * interval '9 minutes' "
        "+ (batch_id % 5 + 1) * interval '20 seconds'",
    )
    page.goto(f"{served.address}/group?name={group.name}")
    expect(page.get_by_role("heading", name="Batches over time")).to_be_visible()
    expect(
        page.get_by_role("img", name="Unread events of shop/orders over time, 10 now")
    ).to_be_visible()
    expect(page.locator(".chart canvas")).to_have_count(3)
    page.get_by_role("button", name="What does it cost?").click()
    expect(page.locator("main")).to_contain_text("It makes streams keep")
    look(page, "group-work")
