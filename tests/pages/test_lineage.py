"""Lineage as a graph, as JSON and in a browser."""

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.pages.conftest import EVIL, Served, look, told
from tests.world.adjunct import Store
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.pages import lineage


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
    graph = told(client, "lineage", stream=str(first.name))
    assert levels(graph) == {
        ("stream", "shop/orders"): 0, ("writer", "load · ingest"): -1, ("group", group.name): 1,
        ("store", store.name): 1, ("stream", "shop/totals"): 2, ("table", "reports.totals"): 2,
    }  # fmt: skip
    assert arrows(graph) == {
        ("load · ingest", "shop/orders"), ("shop/orders", group.name), ("shop/orders", store.name),
        (group.name, "shop/totals"), (group.name, "reports.totals"),
    }  # fmt: skip
    assert (graph["exact"], graph["left_out"]) == (False, 0)
    up = told(client, "lineage", stream=str(second.name))
    assert levels(up)["stream", "shop/orders"] == -2
    assert levels(up)["writer", "load · ingest"] == -3
    assert set(levels(told(client, "lineage", stream=str(second.name), depth=1))) == {
        ("stream", "shop/totals"), ("group", group.name),
    }  # fmt: skip
    assert levels(told(client, "lineage", group=group.name))["stream", "shop/orders"] == -1
    assert levels(told(client, "lineage", store=store.name))["stream", "shop/orders"] == -1


def test_a_row_and_a_run_show_the_commits_that_made_them(
    client: TestClient, database: Database
) -> None:
    first, group, second, _ = chain(database)
    graph = told(client, "lineage", stream=str(second.name), segment="0.0", offset=1)
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
    of_row = told(client, "lineage", stream=str(first.name), segment="0.0", offset=2)
    assert ("writer", "load/r1/ingest") in levels(of_row)
    assert ("writer", "load/r2/ingest") not in levels(of_row)  # it wrote another row
    of_run = told(client, "lineage", run="work/r/process/0")
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
    graph = told(client, "lineage", stream=str(lane.name))
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
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "answer_too_large")
    assert "fewer steps" in answer.json()["error"]["sentence"]


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


@pytest.mark.server
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
    look(page, "lineage")
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
    look(page, "lineage-row")
