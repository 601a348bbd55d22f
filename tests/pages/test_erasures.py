"""The page of a stream has what was erased, with the certificate as a file."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import weir
from tests.pages.conftest import Served, look
from weir.settings import Settings

pytestmark = pytest.mark.server


def test_a_stream_opens_the_form_filled_in_and_gives_its_certificates_as_files(
    page: Page, served: Served, settings: Settings, tmp_path: Path
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "customer")
        store.append("shop/orders", [{"customer": one} for one in ("ann", "bob", "ann")])
        store.create_reader_group("slow", ["shop/orders"])
        page.goto(f"{served.address}/stream?name=shop/orders")
        expect(page.locator("main")).not_to_contain_text("What was erased")
        store.erase(
            "shop/orders", "ticket 4711", keys=["ann"], dry_run=False,
            requested_by="privacy office",
        )  # fmt: skip
        with store.reader("slow") as reader:
            next(iter(reader))
            store.erase("shop/orders", "ticket 4712", keys=["bob"], dry_run=False)
        page.keyboard.press("r")
        erased = page.locator("table").filter(has_text="ticket 4711")
        expect(erased).to_contain_text("waits for batch 1 of slow")
        expect(erased).to_contain_text("privacy office")
        look(page, "erasures")
        with page.expect_download() as downloaded:
            erased.get_by_role("link", name="certificate.json").click()
        downloaded.value.save_as(tmp_path / "certificate.json")
    found = json.loads((tmp_path / "certificate.json").read_text())
    assert found["document"]["erased"][0]["events"] == 2
    page.get_by_role("link", name="Erase", exact=True).click()
    expect(page.get_by_label("Stream").first).to_have_value("shop/orders")
    expect(page.get_by_label("Dry run")).to_be_checked()
    look(page, "erase")
    page.get_by_label("Reason").fill("ticket 4713")
    page.get_by_label("Keys").fill(" C1\n\n")
    expect(page.locator("main")).to_contain_text("' C1'")  # the key with its blank, in the command
