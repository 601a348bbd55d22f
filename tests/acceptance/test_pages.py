"""The pages of Weir inside Airflow's UI: found in its navigation, behind its login, in its mode."""

import os
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from playwright.sync_api import ConsoleMessage, FrameLocator, expect

import weir
from tests.acceptance.browser import Browser, browser, log_in
from tests.acceptance.conftest import settings_of
from weir.local.installation import Installation

pytestmark = [pytest.mark.timeout(900), pytest.mark.release]
RUN = 240_000  # milliseconds in which a run ends


@pytest.fixture(scope="module")
def ui(installation: Installation) -> Iterator[Browser]:
    with weir.open(settings=settings_of(installation)) as store:
        store.create_stream("pages/orders", "customer", segments=2)
        store.append("pages/orders", [{"customer": "ann"}, {"customer": "<b>bob</b>"}])
        store.create_reader_group("pages-totals", ["pages/orders"])
    with browser(installation, "viewer") as opened:
        yield opened


def framed(ui: Browser) -> FrameLocator:
    return ui.page.frame_locator("iframe[title=Weir]")


def picture(ui: Browser, name: str) -> None:
    if folder := os.environ.get("WEIR_TEST_PICTURES"):
        ui.page.wait_for_timeout(1000)
        ui.page.screenshot(path=f"{folder}/{name}.png")


def test_a_viewer_finds_the_streams_in_the_navigation_and_follows_them(ui: Browser) -> None:
    said: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        of_airflow = "sandbox" in message.text  # what its frame allows
        if "/weir/" in message.location["url"] and not of_airflow:
            said.append(message.text)

    ui.page.on("console", heard)
    ui.page.goto(ui.api.url)
    ui.page.get_by_role("link", name="Weir").first.click()
    expect(framed(ui).locator("tbody")).to_contain_text("pages/orders")
    picture(ui, "airflow-streams")
    framed(ui).get_by_role("link", name="pages/orders").click()
    expect(framed(ui).get_by_role("heading", level=1)).to_have_text("pages/orders")
    ui.page.wait_for_url("**/stream?name=pages**")  # what can be sent to somebody
    picture(ui, "airflow-stream")
    framed(ui).get_by_role("link", name="pages-totals").first.click()
    expect(framed(ui).locator(".lead")).to_contain_text("2 events to read")
    assert said == []


def test_the_pages_follow_the_switch_of_airflow(ui: Browser) -> None:
    for mode in ("dark", "light"):
        ui.page.evaluate("mode => localStorage.setItem('theme', mode)", mode)
        ui.page.goto(f"{ui.api.url}/plugin/weir")
        expect(framed(ui).locator("html")).to_have_attribute("data-mode", mode)
        expect(framed(ui).locator("tbody")).to_contain_text("pages/orders")
        picture(ui, f"airflow-{mode}")


def test_a_run_and_its_task_have_a_tab_with_what_weir_knows(
    ui: Browser, installation: Installation
) -> None:
    api = installation.airflow.api()
    run_id = api.trigger("weir_create_stream", {"stream": "pages/made", "routing_key": "n"})
    assert api.wait("weir_create_stream", run_id) == "success"
    run = f"{ui.api.url}/dags/weir_create_stream/runs/{quote(run_id)}"
    ui.page.goto(f"{run}/plugin/weir-run")
    expect(framed(ui).locator("tbody")).to_contain_text("succeeded")
    ui.page.goto(f"{run}/tasks/create_stream/plugin/weir-task")
    expect(framed(ui).locator(".facts")).to_contain_text("pages/made")
    picture(ui, "airflow-task")
    ui.page.goto(f"{ui.api.url}/weir/runs?job=create_stream")  # of the DAGs that it may see
    expect(ui.page.locator("tbody")).to_contain_text("weir_create_stream")


def test_a_viewer_is_told_that_it_may_not_trigger(ui: Browser) -> None:
    ui.page.goto(f"{ui.api.url}/weir/stream?name=pages/orders")
    ui.page.get_by_role("link", name="Seal", exact=True).click()
    expect(ui.page.locator(".shown")).to_contain_text("You may not trigger weir_seal_stream")
    assert ui.page.get_by_role("button", name="Trigger").count() == 0
    status = ui.page.evaluate(
        """async () => (await fetch("../api/v2/dags/weir_seal_stream/dagRuns", {
            method: "POST", headers: { "content-type": "application/json" },
            body: JSON.stringify({ logical_date: null, conf: { stream: "pages/orders" } }),
        })).status"""
    )
    assert status == 403


def test_who_may_trigger_acts_from_a_page_and_sees_what_came_of_it(
    ui: Browser, installation: Installation
) -> None:
    """In Airflow's own frame, which lets a page open nothing else."""
    started = ui.page.context.browser
    assert started is not None
    with started.new_context(viewport={"width": 1400, "height": 1400}) as context:
        admin = log_in(context.new_page(), installation, "admin")
        admin.page.goto(f"{admin.api.url}/plugin/weir")
        page = framed(admin)
        page.get_by_role("link", name="pages/orders").click()
        page.get_by_role("link", name="Scale", exact=True).click()
        expect(page.get_by_label("Stream")).to_have_value("pages/orders")
        start = page.get_by_role("button", name="Trigger weir_scale_stream")
        expect(page.get_by_role("alert").last).to_contain_text('"Segments to replace"')
        expect(start).to_be_disabled()
        page.get_by_label("Segments to replace").fill("7.0")  # there is none of this name
        start.click()
        failed = "The run has failed"
        expect(page.locator(".outcome .failed")).to_contain_text(failed, timeout=RUN)
        expect(page.locator(".outcome .failed")).to_contain_text("the log of its task")
        page.get_by_label("Segments to replace").fill("0.0")
        expect(start).to_be_enabled()
        start.click()
        expect(page.locator(".outcome .success")).to_be_visible(timeout=RUN)
        picture(admin, "airflow-act")
        page.locator(".outcome a").click()
        expect(page.locator("tbody")).to_contain_text("succeeded")
        page.get_by_role("link", name="scale_stream").click()
        page.get_by_role("link", name="Do it again").click()
        expect(page.get_by_label("Segments to replace")).to_have_value("0.0")
