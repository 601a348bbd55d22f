"""The app: its addresses, its headers, who is let in, and what it says when something is wrong."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from tests.pages.serving import anybody
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.pages.app import PAGES, Access, create_app
from weir.pages.shells import STATIC
from weir.settings import Settings


def nobody() -> None:
    raise HTTPException(401, "Not authenticated")


def data_of(app: FastAPI) -> list[str]:
    """The addresses below `api`, with something in place of what they name."""
    found = {route.path for route in app.routes if route.path.startswith("/api")}  # type: ignore[attr-defined]
    return sorted(re.sub("{[a-z_]+}", "x", path) for path in found)


def test_without_a_login_there_is_no_data(settings: Settings) -> None:
    apps = (
        Access(lambda _: settings, anybody, nobody, nobody),
        Access(lambda _: settings, nobody, anybody, anybody),
    )
    for app in map(create_app, apps):
        paths = [path for path in data_of(app) if path != "/api/openapi.json"]
        assert len(paths) > 2
        for path in paths:
            assert TestClient(app).get(path).status_code == 401, path
    assert TestClient(create_app(apps[0])).get("/api/openapi.json").status_code == 401


def test_data_is_only_read(client: TestClient) -> None:
    app = client.app
    assert isinstance(app, FastAPI)
    for route in app.routes:
        assert getattr(route, "methods", {"GET"}) <= {"GET", "HEAD"}, route
    assert client.post("/api/streams").status_code == 405


def test_every_answer_has_a_strict_policy(client: TestClient) -> None:
    for path in (
        "/streams",
        "/api/streams",
        "/assets/weir.css",
        "/api/streams/no/such",
        "/nowhere",
    ):
        policy = client.get(path).headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy, path
        assert "unsafe" not in policy
        assert "frame-ancestors 'self'" in policy
        assert client.get(path).headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_only_what_the_package_has(client: TestClient, name: str) -> None:
    page = client.get(f"/{name}")
    assert page.headers["content-type"].startswith("text/html")
    assert not re.search(r"<style|style=|<script(?![^>]*src)|https?:| on\w+=", page.text)
    for asset in re.findall(r'(?:src|href)="([^"]+)"', page.text):
        assert client.get(f"/{asset}").status_code == 200, asset


@pytest.mark.parametrize("name", PAGES)
def test_a_browser_is_told_at_once_which_modules_a_page_needs(
    client: TestClient, name: str
) -> None:
    page = client.get(f"/{name}")
    told = re.findall("<([^>]+)>; rel=modulepreload", page.headers["link"])
    needed = set(re.findall(r'"(assets/js/[^"]+)" type="module"', page.text))
    for module in told:
        text = client.get(f"/{module}").text
        needed |= {f"assets/js/{one}" for one in re.findall(r'"\./([^"]+\.js)"', text)}
    assert len(told) == len(set(told)) > 3
    assert set(told) == needed


def test_every_page_is_looked_at_in_a_browser() -> None:
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    looked = set(re.findall(r'look\(page, "([a-z-]+)"\)', tests))
    assert set(PAGES) <= looked, "each page is wide and narrow, light and dark, and axe looks at it"


def test_no_module_makes_markup_of_a_text() -> None:
    modules = sorted((STATIC / "js").glob("*.js"))
    assert modules
    for module in modules:
        found = re.findall(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|"
            r"""\.style\b|setAttribute\(["']style""",
            module.read_text(),
        )
        assert not found, module.name


def test_no_file_beside_the_pages_is_served(client: TestClient) -> None:
    for path in (
        "/streams?name=../app.py", "/streams?path=/etc/passwd", "/assets/../app.py",
        "/assets/%2e%2e/app.py", "/assets/..%2fapp.py",
    ):  # fmt: skip
        answer = client.get(path)
        assert "create_app" not in answer.text
        assert "root:" not in answer.text


def test_the_root_leads_to_what_is_wrong_wherever_it_is_mounted(settings: Settings) -> None:
    outer = FastAPI()
    outer.mount("/far/away", create_app(Access(lambda _: settings, anybody, anybody, anybody)))
    answer = TestClient(outer).get("/far/away/")
    assert answer.url.path == "/far/away/now"
    assert answer.status_code == 200


def test_what_has_not_changed_is_not_sent_again(client: TestClient, database: Database) -> None:
    lane = Lane.made(database)
    first = client.get(f"/api/streams/{lane.name}")
    tag = first.headers["etag"]
    again = client.get(f"/api/streams/{lane.name}", headers={"If-None-Match": tag})
    assert (again.status_code, again.content) in ((304, b""), (200, again.content))  # a new minute
    if again.status_code == 200:
        again = client.get(
            f"/api/streams/{lane.name}", headers={"If-None-Match": again.headers["etag"]}
        )
    assert (again.status_code, again.content) == (304, b"")
    lane.append({"0.0": 3})
    changed = client.get(f"/api/streams/{lane.name}", headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.json()["facts"]["events"] == 3


def test_a_database_that_is_away_is_one_sentence_at_once(settings: Settings) -> None:
    away = replace(
        settings, database="host=127.0.0.1 port=1 dbname=weir user=weir_app password=hidden",
        connect_patience=100_000.0,  # for which jobs would wait
    )  # fmt: skip
    client = TestClient(create_app(Access(lambda _: away, anybody, anybody, anybody)))
    answer = client.get("/api/streams")
    assert answer.status_code == 503
    assert answer.json()["error"]["code"] == "database_unavailable"
    assert "can't be reached" in answer.json()["error"]["sentence"]
    assert "hidden" not in answer.text
    assert client.get("/streams").status_code == 200


def test_what_a_connection_names_is_asked(settings: Settings) -> None:
    asked = []

    def settings_of(conn_id: str) -> Settings:
        asked.append(conn_id)
        return settings

    client = TestClient(create_app(Access(settings_of, anybody, anybody, anybody)))
    assert client.get("/api/streams").status_code == 200
    assert client.get("/api/streams?conn_id=weir_shop").status_code == 200
    assert asked == ["", "weir_shop"]


def test_the_description_has_every_address_and_what_it_answers(client: TestClient) -> None:
    described = client.get("/api/openapi.json").json()
    app = client.app
    assert isinstance(app, FastAPI)
    paths = {getattr(r, "path", "") for r in app.routes if getattr(r, "include_in_schema", False)}
    assert set(described["paths"]) == paths
    for path, what in described["paths"].items():
        assert set(what) == {"get"}
        answer = what["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        assert "$ref" in answer, path
        assert {"404", "503"} <= set(what["get"]["responses"]), path


def test_the_library_of_charts_has_its_licence_beside_it() -> None:
    vendored = Path(STATIC / "vendor")
    assert "(v1.6.32)" in (vendored / "uPlot.iife.min.js").read_text()[:100]
    assert "MIT License" in (vendored / "uPlot.LICENSE").read_text()
