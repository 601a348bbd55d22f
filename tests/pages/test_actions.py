"""Forms of actions on the pages: filled in from where one looks, with the command that does the
same, and what is wrong with them. Airflow's part is in tests/acceptance/test_pages.py."""

import json
import re
from typing import Any

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.pages.conftest import Served, look
from tests.pages.serving import anybody, serving
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.operations.jobs import ACTIONS
from weir.pages.actions import Trigger
from weir.pages.app import Access, create_app
from weir.settings import Settings


def form(client: TestClient, action: str, given: Any) -> dict[str, Any]:
    answer = client.get(f"/api/actions/{action}", params={"given": json.dumps(given)})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_a_form_is_filled_in_and_says_the_command_that_does_the_same(client: TestClient) -> None:
    found = form(client, "scale_stream", {"stream": "shop/orders", "segments": ["1.0"], "parts": 3})
    assert found["problem"] is None
    assert found["command"] == "weir scale-stream shop/orders --segments 1.0 --parts 3"
    assert [one["title"] for one in found["fields"]][:2] == ["Stream", "Segments to replace"]
    assert found["trigger"] is None  # no Airflow is here


def test_what_a_form_begins_with_is_in_the_command(client: TestClient) -> None:
    given: dict[str, Any] = {"reader_group": "totals", "to": "tail"}
    said = "weir reset-reader-group totals --to tail"
    assert form(client, "reset_reader_group", given)["command"] == f"{said} --dry-run"
    assert form(client, "reset_reader_group", given | {"dry_run": False})["command"] == said
    given = {"stream": "shop/orders", "cut": "tail", "dry_run": False}
    assert form(client, "truncate_stream", given)["command"].endswith("--cut tail --no-dry-run")


def test_what_is_wrong_is_said_in_the_words_of_the_form(client: TestClient) -> None:
    found = form(client, "scale_stream", {"stream": "shop/orders", "segments": ["<b>"]})
    assert "\"Segments to replace\" holds '<b>'" in found["problem"]
    assert found["command"] == ""
    assert "reader_grop" in form(client, "process", {"reader_grop": "x"})["problem"]


@pytest.mark.parametrize("name", ACTIONS)
def test_every_action_has_a_form(client: TestClient, name: str) -> None:
    found = form(client, name, {})
    assert found["about"]
    assert found["command"] or found["problem"]


DEEP = '{"a":' * 900 + "1" + "}" * 900


@pytest.mark.parametrize("text", ["", "[]", "{", '{"stream": NaN}', r'{"stream": "\ud800"}', DEEP])
def test_what_is_no_object_of_fields_is_refused_in_a_sentence(
    client: TestClient, text: str
) -> None:
    answer = client.get("/api/actions/seal_stream", params={"given": text})
    assert answer.status_code == 400
    assert answer.json()["error"]["code"] == "argument_invalid"


@pytest.mark.server
def test_one_acts_from_where_one_looks(page: Page, served: Served, database: Database) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    lane.append({"0.0": 5})
    group = Group.made(lane)
    page.goto(f"{served.address}/stream?name=shop/orders")
    page.get_by_role("link", name="Truncate up to it").click()
    expect(page.get_by_label("Stream")).to_have_value("shop/orders")
    expect(page.get_by_label("Truncate before")).to_have_value(re.compile(r"^time 20\d\d-.*Z$"))
    expect(page.get_by_label("Dry run")).to_be_checked()
    command = page.locator(".command code")
    expect(command).to_contain_text("weir truncate-stream shop/orders --cut 'time 2")
    look(page, "act")
    page.get_by_label("Truncate before").fill("tail")
    page.get_by_label("Dry run").uncheck()
    expect(command).to_have_text("weir truncate-stream shop/orders --cut tail --no-dry-run")
    page.get_by_label("Stream").fill("no stream <b>")
    expect(page.get_by_role("alert").last).to_contain_text("\"Stream\" is 'no stream <b>'")
    expect(command).to_have_count(0)
    assert page.get_by_role("button", name="Trigger").count() == 0
    look(page, "act-wrong")
    page.goto(f"{served.address}/group?name={group.name}")
    page.get_by_role("link", name="Reset", exact=True).click()
    expect(page.get_by_label("Reader group")).to_have_value(group.name)


@pytest.mark.server
def test_only_the_button_asks_for_a_run(page: Page, served: Served, settings: Settings) -> None:
    """Where Airflow is, which is another app here, a form of one field has nothing to submit."""
    there = Trigger(dag_id="weir_seal_stream", address="asked", refused=None)
    app = create_app(
        Access(lambda _: settings, anybody, anybody, anybody, trigger=lambda action: there)
    )
    asked: list[str] = []

    @app.post("/asked")
    def run() -> dict[str, str]:
        asked.append("run")
        return {"dag_run_id": "r"}

    @app.get("/asked/r")
    def state() -> dict[str, str]:
        return {"state": "success"}

    with serving(app) as address:
        page.goto(f"{address}/act?action=seal_stream")
        page.get_by_label("Stream").fill("shop/orders")
        button = page.get_by_role("button", name="Trigger weir_seal_stream")
        expect(button).to_be_enabled()
        sent: list[str] = []
        page.on("request", lambda one: sent.append(one.method))
        page.get_by_label("Stream").press("Enter")
        page.evaluate("fetch('/asked/r').then(() => 0)")  # what Enter asked for was sent before
        assert sent.count("GET") >= 1
        assert "POST" not in sent
        button.click()
        expect(page.locator(".outcome")).to_contain_text("has succeeded")
        assert asked == ["run"]
