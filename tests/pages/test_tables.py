"""Views as tables: what each has, page by page, and how they look."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

import weir
from tests.pages.conftest import Served, look, pages, told
from tests.world.groups import Group
from tests.world.retention import DAY, pass_time
from tests.world.streams import Lane, rows, run
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_start
from weir.pages import tables
from weir.pages.tables import CORE
from weir.settings import Settings


def shown(answer: Any) -> list[dict[str, Any]]:
    names = [one["name"] for one in answer["columns"]]
    return [dict(zip(names, row, strict=True)) for row in answer["rows"]]


def test_every_table_says_what_it_is_and_answers(client: TestClient, database: Database) -> None:
    Lane.made(database, 1, name="shop/orders")
    found = told(client, "tables")["tables"]
    assert {one.name for one in CORE} < {one["name"] for one in found}, "annexes have some"
    for one in found:
        answer = told(client, f"tables/{one['name']}", stream="shop/orders")
        assert (answer["title"], answer["about"]) == (one["title"], one["about"])
        assert answer["none"]
        assert client.get(f"/api/tables/{one['name']}?after=%20x").status_code in (200, 400, 404)
    assert client.get("/api/tables/calendar").json()["error"]["code"] == "argument_missing"
    refused = client.get("/api/tables/calendar?stream=no/such")
    assert refused.json()["error"]["code"] == "stream_not_found"
    assert client.get("/api/tables/no").json()["error"]["code"] == "table_not_found"


def test_alerts_and_sizes_come_a_few_streams_at_a_time(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        lane = Lane.made(database, 1, name=f"shop/{name}", retention="consumed")
        Group.made(lane, subscriber=True, time_out=60)
        lane.append({"0.0": 5})
        pass_time(lane, DAY)
    monkeypatch.setattr(tables, "LOOKED_AT", 2)
    monkeypatch.setattr(tables, "SUMMED_UP", 2)
    answers = [shown(one) for one in pages(client, "tables/alerts")]
    view = rows(database, "SELECT stream, message FROM weir.retention_alerts ORDER BY stream")
    assert [len(one) for one in answers] == [2, 1]
    assert sorted((row["stream"], row["message"]) for one in answers for row in one) == [
        tuple(row) for row in view
    ]
    answers = [shown(one) for one in pages(client, "tables/disk")]
    kinds = [[row["kind"] for row in one].count("events") for one in answers]
    assert kinds == [2, 1]
    assert {"database"} < {row["kind"] for row in answers[0]}
    [mine] = shown(told(client, "tables/disk", stream="shop/a"))
    assert mine["freed_by"] == "retention is consumed: weir why says what holds the events"


def test_a_value_is_shown_as_what_it_is(client: TestClient, database: Database) -> None:
    Lane.made(database, 1, publish="iceberg").append({"0.0": 1})
    kinds = {one["name"]: one["kind"] for one in told(client, "tables/publications")["columns"]}
    assert (kinds["behind_for"], kinds["published_at"]) == ("span", "time")
    assert (kinds["behind_events"], kinds["publishing"]) == ("number", "flag")


def test_a_deleted_stream_has_a_gravestone(client: TestClient, settings: Settings) -> None:
    with weir.open(settings=settings) as store:
        for _ in range(2):
            store.create_stream("shop/orders", "key")
            store.append("shop/orders", [{"key": "a"}])
            store.seal_stream("shop/orders")
            store.delete_stream("shop/orders", dry_run=False)
    found = shown(told(client, "tables/deleted"))
    assert [(row["name"], row["files"], row["files_left"]) for row in found] == [
        ("shop/orders", 1, True),
    ] * 2
    assert found[0]["deleted_at"] > found[1]["deleted_at"]
    assert shown(told(client, "tables/deleted", stream="shop/orders")) == found
    assert "delete_stream" in found[0]["request"]
    said = client.get("/api/streams/shop/orders").json()["error"]["sentence"]
    assert said.startswith("stream shop/orders was deleted on 20")
    assert found[0]["request"] in said


def test_columns_have_their_history_and_who_names_them(
    client: TestClient, settings: Settings
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "key", schema="key STRING, n INT, old STRING")
        store.create_reader_group("totals", ["shop/orders"], subject="customer")
        store.update_stream("shop/orders", more_columns="extra long")
        store.update_stream("shop/orders", rename_columns=["key -> customer"], allow_named=True)
        store.update_stream("shop/orders", drop_columns=["old"], allow_named=True)
    found = {
        row["name"]: row for row in shown(told(client, "tables/columns", stream="shop/orders"))
    }
    assert list(found) == ["customer", "n", "extra", "old"]
    [renamed] = found["customer"]["changes"]
    assert renamed.startswith("renamed from key (20")
    assert found["customer"]["named_by"] == ["reader group totals", "the routing key"]
    assert found["n"]["named_by"] == []
    assert found["old"]["dropped_at"] is not None
    assert found["extra"]["added_at"] > found["n"]["added_at"]
    assert found["extra"]["dropped_at"] is None


def test_a_calendar_says_which_hours_are_complete_and_which_have_nothing(
    client: TestClient, settings: Settings, database: Database
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "key", event_time="at")
        noon = datetime.now().astimezone().replace(minute=0, second=0) - timedelta(days=3)
        for hour in (0, 2):
            store.append(
                "shop/orders", [{"key": "a", "at": noon + timedelta(hours=hour)}], writer_id="w"
            )
        store.append(
            "shop/orders", [{"key": "a", "at": noon + timedelta(hours=5)}],
            complete_until=noon + timedelta(hours=4), writer_id="w",
        )  # fmt: skip
    task = RunId("weir_ingest", "r", "ingest")
    database.transaction(lambda c: record_start(c, task, "ingest", {"stream": "shop/orders"}))
    database.transaction(lambda c: record_end(c, task, "failed", error="no such file"))
    answer = told(client, "tables/calendar", stream="shop/orders")
    found = shown(answer)
    hours = [hour for row in reversed(found) for hour in row["hours"]]
    assert len(hours) == 24 * tables.DAYS
    first = hours.index("complete")
    assert hours[first : first + 6] == [
        "complete",
        "missing",
        "complete",
        "missing",
        "none",
        "events",
    ]
    assert set(hours[:first]) == {"none"}  # nothing was to come yet
    assert sum(row["appends"] for row in found) == 3
    assert [row["failed"] for row in found if row["failed"]] == [1]
    older = told(client, "tables/calendar", stream="shop/orders", after=answer["next"])
    assert shown(older)[0]["day"] < found[-1]["day"]
    for after, status in (("0001-01-14", 400), ("0001-01-15", 200)):
        asked = f"/api/tables/calendar?stream=shop/orders&after={after}"
        assert client.get(asked).status_code == status, "a year has no day before the first"


def test_who_began_a_run_by_hand_is_known(client: TestClient, settings: Settings) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "key")
    [found] = told(client, "runs")["runs"]
    user, _, rest = found["started_by"].partition(" on ")
    host, _, program = rest.partition(": ")
    assert user
    assert host
    assert program
    assert told(client, "runs")["logs"] is None
    [one] = told(client, "runs/by hand", run_id=found["run_id"])["runs"]
    assert one["started_by"] == found["started_by"]


def test_a_table_of_many_streams_costs_as_many_statements_as_one_of_few(
    statements: Callable[[str], int], database: Database
) -> None:
    Lane.made(database, 1, name="shop/a")
    names = [one.name for one in tables.tables().values() if not one.of_stream]
    few = [statements(f"tables/{one}") for one in names]
    for i in range(5):
        Group.made(Lane.made(database, 1, name=f"shop/b{i}"), subscriber=True)
    assert [statements(f"tables/{one}") for one in names] == few


@pytest.mark.server
def test_one_goes_from_the_list_of_tables_to_one_and_to_a_calendar(
    page: Page, served: Served, database: Database
) -> None:
    lane = Lane.made(database, 1, name="shop/orders", retention="consumed")
    Group.made(lane, subscriber=True, time_out=60)
    lane.append({"0.0": 5})
    pass_time(lane, DAY)
    run(database, "UPDATE stream SET tags = '{a}'")
    page.goto(f"{served.address}/streams")
    page.get_by_role("link", name="More", exact=True).click()
    expect(page.locator("tbody tr")).to_have_count(len(tables.tables()))
    look(page, "tables")
    page.get_by_role("link", name="Alerts", exact=True).click()
    expect(page.locator("tbody")).to_contain_text("has timed out and holds nothing back")
    look(page, "table")
    page.locator("tbody").get_by_role("link", name="shop/orders").click()
    page.get_by_role("link", name="Calendar", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Calendar of shop/orders")
    expect(page.locator("tbody tr")).to_have_count(tables.DAYS)
    expect(page.locator("tbody .hour.events")).to_have_count(1)
    look(page, "table-calendar")
    page.get_by_role("button", name="Next").click()
    expect(page.get_by_role("button", name="Before")).to_be_enabled()
    expect(page.locator(".pages")).to_contain_text(f"{tables.DAYS} rows")
    page.goto(f"{served.address}/table?of=disk")
    expect(page.locator("tbody tr").first).to_be_visible()
    look(page, "table-disk")
    page.goto(f"{served.address}/table?of=damage")
    expect(page.locator(".empty")).to_have_text("Nothing that is not as recorded was found.")
