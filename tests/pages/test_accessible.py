"""Every page as a narrow screen, a dark one, a screen reader, a keyboard and weak eyes find it: it
fits, and holds to the rules of axe."""

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
STREAM, GROUP = f"shop/{'long-' * 11}name", f"{'long-' * 11}name"
# What each page is asked for.
QUERIES = {
    "stream": f"name={STREAM}", "group": f"name={GROUP}", "files": f"name={STREAM}",
    "events": f"name={STREAM}", "lineage": f"stream={STREAM}", "store": "name=shop/newest",
    "run": "dag_id=dag&run_id=run&task_id=task", "act": f"action=scale_stream&stream={STREAM}",
}  # fmt: skip
# How wide its content is, and whether it is white.
SEEN = """() => [document.documentElement.dataset.mode, document.documentElement.scrollWidth,
    getComputedStyle(document.documentElement).backgroundColor === "rgb(255, 255, 255)"]"""


def make_world(database: Database, settings: Settings) -> None:
    """Make a stream with events that scaled, a group that is behind, a store, and a run."""
    with weir.open(settings=settings) as store:
        store.create_stream(STREAM, "n", segments=2)
        store.append(STREAM, [{"n": n, "name": f"<{n}>"} for n in range(20)])
        store.create_reader_group(GROUP, [STREAM])
        for batch in store.reader(GROUP):
            batch.commit({})
        store.append(STREAM, [{"n": n, "name": "later"} for n in range(20)])
        store.scale_stream(STREAM, segments=["0.0"])
    define_store(
        database, "shop/newest", stream_name(STREAM), AdjunctConfiguration(),
        AdjunctDefinition(), request_id="define",
    )  # fmt: skip
    task = RunId("dag", "run", "task", -1, 1)
    database.transaction(lambda c: record_start(c, task, "scale_stream", {"stream": STREAM}))
    database.transaction(lambda c: record_end(c, task, "succeeded", report={"n": [1, {"m": 2}]}))


def test_every_page_fits_wide_and_narrow_light_and_dark_and_axe_finds_nothing_serious(
    page: Page, served: Served, database: Database, settings: Settings
) -> None:
    make_world(database, settings)
    found, wider = {}, {}
    for name in PAGES:
        for width, mode in ((1280, "light"), (360, "dark")):
            page.set_viewport_size({"width": width, "height": 800})
            page.emulate_media(color_scheme=mode)  # type: ignore[arg-type]  # light or dark
            page.goto(f"{served.address}/{name}?{QUERIES.get(name, '')}")
            expect(page.locator(".shown")).to_have_attribute("aria-busy", "false")
            shown, wide, white = page.evaluate(SEEN)
            assert (shown, white) == (mode, mode == "light"), name
            if wide > width:
                wider[name, width] = wide
            for one in Axe().run(page).response["violations"]:
                if one["impact"] in ("serious", "critical"):
                    nodes = [node["html"][:200] for node in one["nodes"]]
                    found[name, mode, one["id"]] = nodes
    assert (found, wider) == ({}, {})
