"""Airflow's UI as a person uses it: in Debian's Chromium, by what is to be seen on the page."""

import json
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect, sync_playwright

from weir.local.airflow_api import AirflowApi
from weir.local.installation import Installation

CHROMIUM = Path("/usr/bin/chromium")
# Chromium runs as root, has no display, and asks nobody on the Internet for anything.
FLAGS = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync""".split()
PATIENCE = 30_000  # milliseconds, for a machine that does other things


def chromium() -> str:
    """Return the path of the browser's program. Install it if it is missing and we may."""
    if not CHROMIUM.exists():
        if os.getuid() != 0 or shutil.which("apt-get") is None:
            raise FileNotFoundError(
                f"the tests of Airflow's forms need {CHROMIUM}: install it (apt-get install "
                "chromium), or run them as root on Debian."
            )
        for command in (
            ["update", "-qq"],
            ["install", "-y", "-qq", "--no-install-recommends", "chromium"],
        ):
            environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            subprocess.run(["apt-get", *command], check=True, env=environment)
    return str(CHROMIUM)


class Form:
    """The dialog that opens when a person presses Trigger."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.dialog = page.get_by_role("dialog")
        self.trigger_button = self.dialog.get_by_role("button", name="Trigger", exact=True)
        expect(self.trigger_button).to_be_visible()

    def field(self, title: str) -> Locator:
        """Return the field with this title: its label, its input and its help."""
        label = self._page.locator(
            "label[data-part=label]", has_text=re.compile(rf"^{re.escape(title)}\s*\*?$")
        )
        return self.dialog.locator("[data-scope=field][data-part=root]").filter(has=label)

    def titles(self, *, required: bool) -> set[str]:
        """Return the titles of the fields in the open section, with or without a red star."""
        found = set()
        for label in self.dialog.locator("label[data-part=label]").all():
            text = label.inner_text()
            if ("*" in text) == required and label.is_visible():
                found.add(text.removesuffix("*").strip())
        return found

    def open_section(self, title: str) -> None:
        """Unfold a section, which folds the one that was open."""
        self.dialog.get_by_role("button", name=title, exact=True).click()

    def fill(self, title: str, value: str) -> None:
        """Write into a field of the open section, or choose, or switch."""
        field = self.field(title)
        field.wait_for()  # the fields come some moments after the dialog
        text = field.locator("input:not([type=checkbox]):not([role=combobox]), textarea").first
        switch = field.locator("label.chakra-switch__root")
        if switch.count():
            switch.click()
        elif (choice := field.locator("input[role=combobox]")).count():
            choice.click()
            self._page.get_by_role("option", name=value, exact=True).click()
        elif (editor := field.locator(".monaco-editor")).count():  # of a JSON object
            editor.first.click()
            self._page.keyboard.press("Control+A")
            self._page.keyboard.insert_text(value)
            self._page.keyboard.press("Control+Shift+End")  # brackets that the editor closed
            self._page.keyboard.press("Delete")
        else:
            text.fill(value)

    def close(self) -> None:
        """Close the form without triggering a run."""
        self.dialog.locator("[data-part=close-trigger]").first.click()
        self.dialog.wait_for(state="detached")


class Browser:
    """Airflow's UI, logged in."""

    def __init__(self, page: Page, api: AirflowApi, username: str, password: str) -> None:
        self.page = page
        self.api = api
        self.in_runs = 0.0  # seconds that runs took which were triggered here
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page.goto(api.url + "/dags")
        page.get_by_role("textbox", name="Username").fill(username)
        page.locator("input[name=password]").fill(password)
        page.keyboard.press("Enter")
        page.wait_for_url(lambda url: "login" not in url)

    def see_dags(self, tag: str = "") -> None:
        """Open the list of DAGs, or of those with a tag."""
        self.page.goto(f"{self.api.url}/dags" + (f"?tags={quote(tag)}" if tag else ""))
        self.page.get_by_test_id("dag-card").first.wait_for()

    def dags(self) -> list[str]:
        """Return the names of the DAGs in the list that is shown."""
        cards = self.page.get_by_test_id("dag-card").all()
        return [card.locator("a[href^='/dags/']").first.inner_text() for card in cards]

    def form(self, dag: str) -> Form:
        """Open the form of a DAG in the list that is shown, and return it."""
        link = self.page.get_by_role("link", name=dag, exact=True)
        card = self.page.get_by_test_id("dag-card").filter(has=link)
        card.get_by_role("button", name="Trigger").click()
        return Form(self.page)

    def run(
        self,
        dag: str,
        fields: Mapping[str, str],
        sections: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> tuple[str, str]:
        """Fill in a form's open section, and others by their titles, and trigger it. Return the
        run's id, and the state that the page shows when the run has ended."""
        self.see_dags()
        form = self.form(dag)
        for title, value in fields.items():
            form.fill(title, value)
        for section, more in sections.items():
            form.open_section(section)
            for title, value in more.items():
                form.fill(title, value)
        if pictures := os.environ.get("WEIR_TEST_PICTURES"):  # for people who want to look at it
            self.page.screenshot(path=f"{pictures}/{dag}-{time.monotonic():.0f}.png")
        before = {run["dag_run_id"] for run in self._runs(dag)}
        form.trigger_button.click()
        form.dialog.wait_for(state="detached")
        [run_id] = {run["dag_run_id"] for run in self._runs(dag)} - before
        self.page.goto("about:blank")  # Airflow's page draws itself again and again
        begun = time.monotonic()
        self.api.wait(dag, run_id)
        self.in_runs += time.monotonic() - begun
        self.page.goto(f"{self.api.url}/dags/{dag}/runs/{quote(run_id)}")
        badge = self.page.get_by_test_id("state-badge").filter(
            has_text=re.compile("Success|Failed")
        )
        badge.first.wait_for()
        return run_id, badge.first.inner_text().strip()

    def succeed(
        self,
        dag: str,
        fields: Mapping[str, str],
        sections: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    ) -> str:
        """Fill in a form and trigger it as `run` does. Return the id of the run, which succeeds."""
        run_id, state = self.run(dag, fields, sections)
        assert state == "Success", self.api.failure(dag, run_id)
        return run_id

    def expect_in_log(self, dag: str, run_id: str, task: str, *said: str) -> None:
        """Check that the page of a task's log shows these texts."""
        self.page.goto(f"{self.api.url}/dags/{dag}/runs/{quote(run_id)}/tasks/{task}")
        for text in said:
            expect(self.page.locator("body")).to_contain_text(text)

    def _runs(self, dag: str) -> list[dict[str, str]]:
        runs: list[dict[str, str]] = self.api.get(f"/dags/{dag}/dagRuns?limit=100")["dag_runs"]
        return runs


def log_in(page: Page, installation: Installation, username: str) -> Browser:
    """Return a browser in which a user of an installation is logged in."""
    passwords = json.loads(installation.airflow.passwords_file.read_text())
    return Browser(page, installation.airflow.api(), username, passwords[username])


@contextmanager
def browser(installation: Installation, username: str) -> Iterator[Browser]:
    """Yield a browser of our own, of which nothing is left afterwards."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        try:
            page = started.new_page(viewport={"width": 1400, "height": 1400})
            yield log_in(page, installation, username)
        finally:
            started.close()
