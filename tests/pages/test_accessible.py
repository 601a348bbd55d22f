"""The pages as a screen reader, a keyboard and weak eyes find them, by the rules of axe."""

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Page, expect

import weir
from tests.pages.conftest import Served
from weir.adjunct.stores import define_store
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_start
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import stream_name
from weir.pages.app import PAGES
from weir.settings import Settings

pytestmark = pytest.mark.server
# What each page is asked for.
QUERIES = {
    "stream": "name=shop/orders", "group": "name=totals", "files": "name=shop/orders",
    "events": "name=shop/orders", "lineage": "stream=shop/orders", "store": "name=shop/newest",
    "run": "dag_id=dag&run_id=run&task_id=task",
    "act": "action=scale_stream&stream=shop/orders",
}  # fmt: skip


@pytest.fixture
def world(database: Database, settings: Settings) -> None:
    """A stream with events that scaled, a group that is behind, a store, and a run."""
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "n", segments=2)
        store.append("shop/orders", [{"n": n, "name": f"<{n}>"} for n in range(20)])
        store.create_reader_group("totals", ["shop/orders"])
        for batch in store.reader("totals"):
            batch.commit({})
        store.append("shop/orders", [{"n": n, "name": "later"} for n in range(20)])
        store.scale_stream("shop/orders", segments=["0.0"], boundaries=[0.25])
    define_store(
        database, "shop/newest", stream_name("shop/orders"), AdjunctConfiguration(),
        AdjunctDefinition(), request_id="define",
    )  # fmt: skip
    task = RunId("dag", "run", "task", -1, 1)
    database.transaction(lambda c: record_start(c, task, "scale_stream", {"stream": "shop/orders"}))
    database.transaction(lambda c: record_end(c, task, "succeeded", report={"n": [1, {"m": 2}]}))


@pytest.mark.drawn(1)
@pytest.mark.parametrize("mode", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_page(
    page: Page, served: Served, world: None, mode: str
) -> None:
    page.emulate_media(color_scheme=mode)  # type: ignore[arg-type]  # a parameter of the test
    found = {}
    for name in PAGES:
        page.goto(f"{served.address}/{name}?{QUERIES.get(name, '')}")
        expect(page.locator(".shown")).to_have_attribute("aria-busy", "false")
        for one in Axe().run(page).response["violations"]:
            if one["impact"] in ("serious", "critical"):
                found[name, one["id"]] = [node["html"][:200] for node in one["nodes"]]
    assert found == {}
