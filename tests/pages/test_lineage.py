"""Lineage as a graph, as JSON."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.world.adjunct import Store
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.pages import lineage


def told(client: TestClient, **given: Any) -> Any:
    answer = client.get("/api/lineage", params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def levels(graph: Any) -> dict[tuple[str, str], int]:
    return {(one["kind"], one["name"]): one["level"] for one in graph["nodes"]}


def arrows(graph: Any) -> set[tuple[str, str]]:
    names = [one["name"] for one in graph["nodes"]]
    return {(names[one["source"]], names[one["target"]]) for one in graph["edges"]}


def chain(database: Database) -> tuple[Lane, Group, Lane, Store]:
    """Return a stream, a group that reads it and writes another stream and a table, and a store."""
    first, second = (Lane.made(database, 1, name=f"shop/{name}") for name in ("orders", "totals"))
    store = Store.made(first)
    first.append({"0.0": 5}, source="load/r1/ingest")
    first.append({"0.0": 5}, source="load/r2/ingest")
    group = Group.made(first)
    reader = group.reader("work/r/process/0")
    batch = reader.must_open()
    reader.commit(batch)
    outputs = [
        {"kind": "stream", "stream_id": second.stream_id, "transaction_number": 1},
        {"kind": "table", "output": "reports.totals"},
    ]
    run(database, "UPDATE reader_batch SET outputs = CAST(:o AS jsonb)", o=json.dumps(outputs))
    second.append(
        {"0.0": 2}, writer=f"group {group.name}", batch=f"{group.group_id}.{batch.batch_id}",
        source="work/r/process/0",
    )  # fmt: skip
    return first, group, second, store


def test_a_stream_shows_who_appends_reads_and_writes_both_ways(
    client: TestClient, database: Database
) -> None:
    first, group, second, store = chain(database)
    graph = told(client, stream=str(first.name))
    assert levels(graph) == {
        ("stream", "shop/orders"): 0, ("writer", "load · ingest"): -1, ("group", group.name): 1,
        ("store", store.name): 1, ("stream", "shop/totals"): 2, ("table", "reports.totals"): 2,
    }  # fmt: skip
    assert arrows(graph) == {
        ("load · ingest", "shop/orders"), ("shop/orders", group.name), ("shop/orders", store.name),
        (group.name, "shop/totals"), (group.name, "reports.totals"),
    }  # fmt: skip
    assert (graph["exact"], graph["left_out"]) == (False, 0)
    up = told(client, stream=str(second.name))
    assert levels(up)["stream", "shop/orders"] == -2
    assert levels(up)["writer", "load · ingest"] == -3
    assert set(levels(told(client, stream=str(second.name), depth=1))) == {
        ("stream", "shop/totals"), ("group", group.name),
    }  # fmt: skip
    assert levels(told(client, group=group.name))["stream", "shop/orders"] == -1
    assert levels(told(client, store=store.name))["stream", "shop/orders"] == -1


def test_a_row_and_a_run_show_the_commits_that_made_them(
    client: TestClient, database: Database
) -> None:
    first, group, second, _ = chain(database)
    graph = told(client, stream=str(second.name), segment="0.0", offset=1)
    assert graph["exact"] is True
    found = levels(graph)
    assert found["group", group.name] == -1
    assert found["stream", "shop/orders"] == -2
    assert {found["writer", f"load/r{i}/ingest"] for i in (1, 2)} == {-3}
    [read] = [
        one for one in graph["edges"]
        if graph["nodes"][one["source"]]["name"] == "shop/orders"
    ]  # fmt: skip
    assert read["events"] == 10
    of_row = told(client, stream=str(first.name), segment="0.0", offset=2)
    assert ("writer", "load/r1/ingest") in levels(of_row)
    assert ("writer", "load/r2/ingest") not in levels(of_row)  # it wrote another row
    of_run = told(client, run="work/r/process/0")
    assert of_run["nodes"][0] == {"kind": "writer", "name": "work/r/process/0", "level": 0}
    assert levels(of_run)["stream", "shop/orders"] == -1
    assert levels(of_run)["stream", "shop/totals"] == 1


def test_a_graph_is_bounded_and_says_what_it_left_out(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane.made(database, 1)
    for _ in range(5):
        Group.made(lane)
    monkeypatch.setattr(lineage, "MOST", 3)
    graph = told(client, stream=str(lane.name))
    assert (len(graph["nodes"]), len(graph["edges"]), graph["left_out"]) == (3, 2, 3)


def test_what_takes_too_long_is_said_with_what_to_do(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = Lane.made(database, 1)
    for _ in range(30):
        lane.append({"0.0": 1})
    group = Group.made(lane)
    reader = group.reader("a/b/c")
    reader.commit(reader.must_open())
    monkeypatch.setattr(lineage, "PATIENCE", 0.001)
    answer = client.get("/api/lineage", params={"run": "a/b/c"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "lineage_too_large")
    assert "fewer steps" in answer.json()["error"]["sentence"]


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"stream": "no/such"}, 404), ({"group": "nobody"}, 404), ({"store": "no/such"}, 404),
        ({"run": "a/b/c"}, 404), ({"stream": "no/such", "segment": "0.0", "offset": 1}, 404),
        ({}, 400), ({"stream": "a/b", "group": "c"}, 400), ({"stream": "a/b", "offset": 1}, 400),
        ({"stream": "a/b", "segment": "0.0"}, 400), ({"stream": "a/b", "depth": 99}, 400),
        ({"group": "g", "segment": "0.0", "offset": 1}, 400), ({"run": "<b>"}, 404),
    ],
)  # fmt: skip
def test_what_is_not_there_or_makes_no_sense_is_refused(
    client: TestClient, given: dict[str, Any], status: int
) -> None:
    answer = client.get("/api/lineage", params=given)
    assert answer.status_code == status
    if given == {"run": "a/b/c"} or given == {"group": "nobody"}:
        assert answer.json()["error"]["code"] == "lineage_not_found"
