"""The runs of Weir's jobs, the newest first, as JSON and in a browser."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, look, pages, told
from tests.pages.serving import anybody
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_progress, record_start
from weir.pages import newest_runs
from weir.pages.app import Access, create_app
from weir.settings import Settings


def record(
    database: Database, of: RunId, job: str = "process", state: str = "succeeded", **given: Any
) -> None:
    arguments = given.pop("arguments", {})
    database.transaction(lambda c: record_start(c, of, job, arguments))
    database.transaction(lambda c: record_progress(c, of, "a line"))
    if state != "running":
        database.transaction(lambda c: record_end(c, of, state, **given))


def tasks(found: Any) -> list[str]:
    return [one["task_id"] for one in found["runs"]]


def test_a_run_says_what_it_read_wrote_and_said(client: TestClient, database: Database) -> None:
    lane, out = Lane.made(database), Lane.made(database)
    lane.append({"0.0": 5, "1.0": 5})
    group = Group.made(lane)
    reading = RunId("dag", "r", "read", 0)
    record(database, reading, state="running", arguments={"reader_group": group.name})
    reader = group.reader(str(reading))
    reader.commit(reader.must_open(4))
    reader.commit(reader.must_open(6))
    given = {"stream": str(lane.name), "events": 10}
    record(database, RunId("dag", "r", "append"), "ingest", report=given)
    record(database, RunId("dag", "r", "bad"), "ingest", "failed", error="it broke")
    bad, append, read = told(client, "runs")["runs"]
    assert (bad["state"], bad["says"]) == ("failed", "it broke")
    assert (append["stream"], append["events"], append["says"]) == (
        str(lane.name), 10, "a line",
    )  # fmt: skip
    assert (read["reader_group"], read["batches"], read["read"]) == (group.name, 2, 10)
    assert (read["state"], read["map_index"], read["ended_at"]) == ("running", 0, None)
    outputs = [{"kind": "stream", "stream_id": out.stream_id, "transaction_number": 1}]
    outputs += [{"kind": "table", "output": "a.b"}] * 2
    run(
        database, "UPDATE reader_batch SET outputs = CAST(:o AS jsonb)", o=json.dumps(outputs)
    )  # fmt: skip
    assert told(client, "runs")["runs"][2]["wrote"] == [
        {"kind": "stream", "name": str(out.name)}, {"kind": "table", "name": "a.b"},
    ]  # fmt: skip


def test_runs_are_found_by_action_state_stream_and_group(
    client: TestClient, database: Database
) -> None:
    record(database, RunId("d", "r", "a"), "ingest", arguments={"stream": "shop/a"})
    record(database, RunId("d", "r", "b"), "ingest", "failed", arguments={"stream": "shop/b"})
    record(database, RunId("d", "r", "c"), "process", arguments={"reader_group": "g"})
    record(database, RunId("d", "r", "u"), "upkeep")
    assert tasks(told(client, "runs")) == ["u", "c", "b", "a"]
    assert tasks(told(client, "runs", upkeep=False)) == ["c", "b", "a"]
    assert tasks(told(client, "runs", job="ingest")) == ["b", "a"]
    assert tasks(told(client, "runs", state="failed")) == ["b"]
    assert tasks(told(client, "runs", stream="shop/a")) == ["a"]
    assert tasks(told(client, "runs", reader_group="g")) == ["c"]
    assert tasks(told(client, "runs", job="ingest", reader_group="g")) == []
    assert client.get("/api/runs", params={"state": "x"}).status_code == 400


def test_runs_of_a_stream_include_those_of_groups_that_read_it(
    client: TestClient, database: Database
) -> None:
    lane, other = Lane.made(database), Lane.made(database)
    reads, elsewhere = Group.made(lane), Group.made(other)
    record(database, RunId("d", "r", "a"), arguments={"reader_group": reads.name})
    record(database, RunId("d", "r", "b"), arguments={"reader_group": elsewhere.name})
    record(database, RunId("d", "r", "c"), "ingest", arguments={"stream": str(lane.name)})
    assert tasks(told(client, "runs", stream=str(lane.name))) == ["c", "a"]


def test_pages_have_each_run_and_each_try_once(client: TestClient, database: Database) -> None:
    for number in (1, 2):
        for task in "abc":
            record(database, RunId("d", "r", task, try_number=number))
    run(database, "UPDATE job_run SET started_at = 'epoch' WHERE task_id <> 'a'")
    answers = pages(client, "runs", limit=2)
    found = [(row["task_id"], row["try_number"]) for one in answers for row in one["runs"]]
    assert found == [("a", 2), ("a", 1), ("c", 2), ("c", 1), ("b", 2), ("b", 1)]


def test_what_is_rare_is_looked_for_so_far_and_then_further_on(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest_runs, "LOOKED_AT", 3)
    for number in range(7):
        record(database, RunId("d", "r", str(number)), "ingest" if number == 1 else "upkeep")
    first = told(client, "runs", job="ingest")
    assert (first["runs"], first["looked_at"]) == ([], 3)
    second = told(client, "runs", job="ingest", after=first["next"])
    assert tasks(second) == ["1"]
    assert told(client, "runs", job="ingest", after=second["next"]) == {
        **second, "runs": [], "next": None,
    }  # fmt: skip


def test_a_list_has_the_dags_that_somebody_may_see(settings: Settings, database: Database) -> None:
    for dag in ("mine", "others"):
        record(database, RunId(dag, "r", dag))

    def seen(*dags: str) -> list[str]:
        access = Access(lambda _: settings, anybody, anybody, anybody, dags=lambda: set(dags))
        return tasks(told(TestClient(create_app(access)), "runs"))

    assert seen("mine") == ["mine"]
    assert seen("mine", "others") == ["others", "mine"]
    assert seen() == []


@pytest.mark.server
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
    look(page, "runs")
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
    look(page, "run")
