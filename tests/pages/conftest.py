"""The app of the pages over a real database, as somebody who may see all; in a browser, too."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from fastapi import FastAPI
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Page, expect, sync_playwright
from sqlalchemy import event

from tests.acceptance.browser import FLAGS, PATIENCE, chromium
from tests.conftest import TestDatabase
from tests.history.conftest import lane as lane
from tests.history.conftest import shared_database as shared_database
from tests.pages.serving import anybody, serving
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.pages import files, lineage
from weir.pages.app import Access, create_app
from weir.settings import Settings

EVIL = "<img src=x onerror=document.title='evil'><script>document.title='evil'</script>"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a statement of a page take what it takes on a machine that is busy."""
    for one in (files, lineage):
        monkeypatch.setattr(one, "PATIENCE", 120.0)


@pytest.fixture
def viewing(
    settings: Settings, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> Settings:
    """The settings of a server that shows pages: its login only reads."""
    dsn = postgres_server.dsn(test_database.name, "weir_view")
    return replace(settings, database=dsn)


@dataclass
class Shown:
    """The app that all tests of the pages ask, because to make one takes longer than most answers,
    and the settings of the test that asks."""

    settings: Settings = field(default_factory=Settings)
    app: FastAPI = field(init=False)

    def __post_init__(self) -> None:
        access = Access(lambda conn_id: self.settings, anybody, anybody, anybody, anybody)
        self.app = create_app(access)


@pytest.fixture(scope="package")
def shown() -> Shown:
    return Shown()


@pytest.fixture
def client(shown: Shown, viewing: Settings) -> Iterator[TestClient]:
    """Yield a client of the app."""
    shown.settings = viewing
    with TestClient(shown.app) as client:
        yield client


def told(client: TestClient, path: str, **given: Any) -> Any:
    """Return what an address answers."""
    answer = client.get(f"/api/{path}", params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def pages(client: TestClient, path: str, **given: Any) -> Iterator[Any]:
    """Yield the answers of an address, each after the `next` of the one before."""
    answer = told(client, path, **given)
    yield answer
    while answer["next"] is not None:
        answer = told(client, path, **given, after=answer["next"])
        yield answer


@pytest.fixture
def statements(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    """Return `statements(path)`: by how many statements an address is answered."""
    sent: list[str] = []
    made = Database.of

    def counted(settings: Settings) -> Database:
        opened = made(settings)
        event.listen(opened.engine, "before_cursor_execute", lambda *s: sent.append(s[2]))
        return opened

    monkeypatch.setattr(Database, "of", counted)

    def count(path: str) -> int:
        sent.clear()
        told(client, path)
        return len(sent)

    return count


@dataclass
class Served:
    """The app on a port of its own, whose settings a test may change."""

    shown: Shown
    address: str = ""
    said: list[str] = field(default_factory=list)  # by the consoles of the pages


@pytest.fixture
def served(shown: Shown, viewing: Settings) -> Iterator[Served]:
    shown.settings = viewing
    made = Served(shown)
    with serving(shown.app) as made.address:
        yield made


@pytest.fixture(scope="package")
def started() -> Iterator[Browser]:
    """Yield the one browser of a run: all tests of the pages are on one worker."""
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture
def page(started: Browser, served: Served) -> Iterator[Page]:
    """Yield a page whose console has to stay empty."""
    context = started.new_context(viewport={"width": 1280, "height": 900}, color_scheme="light")
    opened = context.new_page()
    opened.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    opened.on("console", lambda one: served.said.append(one.text))
    opened.on("pageerror", lambda one: served.said.append(str(one)))
    yield opened
    context.close()
    assert served.said == []


# How a page is shown, how wide its content is, and whether it is white.
_SEEN = """() => [document.documentElement.dataset.mode, document.documentElement.scrollWidth,
    getComputedStyle(document.documentElement).backgroundColor === "rgb(255, 255, 255)"]"""


def look(page: Page, name: str) -> None:
    """Look at a page as a wide and light screen shows it and as a narrow and dark one: it fits, and
    axe finds nothing serious. Take pictures for people who want to look, too."""
    folder = os.environ.get("WEIR_TEST_PICTURES")
    for width, mode in ((360, "dark"), (1280, "light")):
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=mode)  # type: ignore[arg-type]  # light or dark
        expect(page.locator("html")).to_have_attribute("data-mode", mode)
        shown, wide, white = page.evaluate(_SEEN)
        assert (shown, white) == (mode, mode == "light"), name
        assert wide <= width, name
        found = [
            (one["id"], [node["html"][:200] for node in one["nodes"]])
            for one in Axe().run(page).response["violations"]
            if one["impact"] in ("serious", "critical")
        ]
        assert found == [], (name, mode)
        if folder:
            page.wait_for_timeout(300)
            page.screenshot(path=f"{folder}/{name}-{mode}.png", full_page=True)
