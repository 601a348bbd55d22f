"""The files of a stream: a page of them, and why they are still there."""

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect
from sqlalchemy import text

from tests.pages.conftest import Served, look, pages
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.pages import files


def test_files_come_page_by_page_with_their_offsets_and_times(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    for _ in range(3):
        lane.append({"0.0": [3, 4], "1.0": 2})
    answers = list(pages(client, "streams/shop/orders/files", limit=4))
    found = [row for one in answers for row in one["files"]]
    assert answers[0]["total"] == len(found) == 9
    assert [one["segment"] for one in found] == ["0.0"] * 6 + ["1.0"] * 3
    assert [one["start_offset"] for one in found] == [0, 3, 7, 10, 14, 17, 0, 2, 4]
    assert [one["end_offset"] for one in found][:2] == [3, 7]
    clocks = [one["first_clock"] for one in found[6:]]
    assert clocks == sorted(set(clocks))
    assert all(one["first_clock"] == one["last_clock"] for one in found)
    one = client.get("/api/streams/shop/orders/files?segment=1.0").json()
    assert one["files"] == found[6:]
    assert one["total"] == 3


def test_a_file_of_several_commits_has_a_span_of_times(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    lane.append({"0.0": 3})
    run(
        database,
        "UPDATE data_file SET transaction_number = NULL, first_clock = 1000000, "
        "last_clock = 2000000",
    )
    [file] = client.get("/api/streams/shop/orders/files").json()["files"]
    assert file["transaction_number"] is None
    assert (file["first_clock"], file["last_clock"]) == (
        "1970-01-01T00:00:01Z",
        "1970-01-01T00:00:02Z",
    )


def test_each_file_says_why_it_is_here(client: TestClient, database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    lane.append({"0.0": 3})
    lane.append({"0.0": 5})
    [all_of_it] = client.get("/api/streams/shop/orders/why").json()["reasons"]
    assert (all_of_it["files"], all_of_it["events"]) == (2, 8)
    assert "retention is keep" in all_of_it["why"]
    first, _ = client.get("/api/streams/shop/orders/files").json()["files"]
    path = {"path": first["path"]}
    [one] = client.get("/api/streams/shop/orders/why", params=path).json()["reasons"]
    assert (one["files"], one["events"]) == (1, 3)
    path = {"path": "no/such<b>"}
    [none] = client.get("/api/streams/shop/orders/why", params=path).json()["reasons"]
    assert "records no file of this path" in none["why"]


def test_what_compaction_would_do_is_counted(client: TestClient, database: Database) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    address = "/api/streams/shop/orders/compaction"
    lane.append({"0.0": 3})
    assert client.get(address).json()["files_before"] == 0
    lane.append({"0.0": 3, "1.0": 1})
    lane.append({"0.0": 3})
    would = client.get(address).json()
    assert (would["files_before"], would["files_after"], would["events"]) == (3, 1, 9)


def test_of_very_many_files_some_are_looked_at(client: TestClient, database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    lane.append({"0.0": 1})
    run(
        database,
        """INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
            transaction_number, first_seq, last_seq, schema_version, path)
        SELECT stream_id, stream_name, segment_id, i, 1, bytes, transaction_number, 0, 0,
            schema_version, stream_id || '/' || i
        FROM data_file, generate_series(1, 10000) i""",
    )
    assert client.get("/api/streams/shop/orders/files").json()["total"] is None
    looked_at = client.get("/api/streams/shop/orders").json()["files"]
    assert (looked_at["files"], looked_at["more"]) == (10_000, True)
    would = client.get("/api/streams/shop/orders/compaction").json()
    assert (would["among"], would["files_before"]) == (2000, 2000)


def test_why_all_files_are_here_is_not_told_if_it_takes_long(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    lane.append({"0.0": 3})
    monkeypatch.setattr("weir.queries.pages.files.WHY", text("SELECT pg_sleep(9)"))
    monkeypatch.setattr(files, "PATIENCE", 0.1)
    answer = client.get("/api/streams/shop/orders/why")
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "answer_too_large"


@pytest.mark.server
def test_one_asks_why_a_file_is_here(page: Page, served: Served, database: Database) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    Group.made(lane)
    for _ in range(30):
        lane.append({"0.0": 5000, "1.0": 20})
    page.goto(f"{served.address}/stream?name=shop/orders")
    page.get_by_role("link", name="60 files").click()
    expect(page.locator("tbody tr")).to_have_count(50)
    page.get_by_role("button", name="Why is", exact=False).first.click()
    expect(page.locator("tbody tr").first).to_contain_text("retention is keep")
    page.get_by_role("button", name="Why are they still here?").click()
    expect(page.get_by_role("table", name="Why files are here")).to_contain_text("150,600")
    page.get_by_role("button", name="What would compaction do?").click()
    expect(page.locator("main")).to_contain_text("put 60 files with 150,600 events")
    look(page, "files")
    page.get_by_role("button", name="Next").click()
    expect(page.locator("tbody").last.locator("tr")).to_have_count(10)
    page.get_by_role("button", name="1.0").first.click()
    expect(page.locator("main")).to_contain_text("30 files")
