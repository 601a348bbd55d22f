"""How soon a page is there in a browser that has nothing of it yet."""

import time
from contextlib import closing

from playwright.sync_api import sync_playwright

from benchmarks.figure import Figure
from benchmarks.pages_world import many, world
from benchmarks.setting import Setting
from tests.acceptance.browser import FLAGS, chromium
from tests.pages.serving import anybody, serving
from weir.pages.app import Access, create_app
from weir.settings import Settings

SECONDS = 1.5  # what a person waits for without a thought
PATH = "/stream?name=bench/s42"


def first(setting: Setting) -> Figure:
    """Return the figure of a stream's page, beside the seconds that it may take."""
    setting.durable(False)
    size = many(setting)
    world(setting, size)
    settings = Settings(database=setting.server.dsn(f"pages_{size.streams}", "weir_view"))
    app = create_app(Access(lambda _: settings, anybody, anybody, anybody, anybody))
    address = setting.at_end.enter_context(serving(app))
    playwright = setting.at_end.enter_context(sync_playwright())
    browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
    setting.at_end.callback(browser.close)

    def shown() -> float:
        with closing(browser.new_context()) as context:  # which keeps no file of the one before
            page = context.new_page()
            begun = time.perf_counter()
            page.goto(address + PATH, wait_until="commit")
            page.locator(".shown[aria-busy=false]").wait_for()
            return time.perf_counter() - begun

    return Figure(
        "pages/first",
        f"a stream's page in a Chromium that has nothing of it yet, until all is shown, with "
        f"{size.streams:,} streams, beside {SECONDS} s",
        shown,
        lambda: SECONDS,
        limit=1.0,
        runs=10,
        small_runs=5,
    )


FIGURES = {"pages/first": first}
