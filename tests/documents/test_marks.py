"""Every block of a page is played, or its line says why not."""

import re

import pytest

from tests.documents.blocks import MARKS, PAGES, REASONS, SHOWN, TYPED, blocks
from tests.rooms import REPOSITORY

_LOOKS_TYPED = re.compile(r"^(\$ |(weir|make|python|pip|airflow|SELECT|import) )", re.M)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_is_played_or_says_why_not(page: str) -> None:
    fences = re.findall(r"^ *```", (REPOSITORY / page).read_text(), re.M)
    assert len(fences) == 2 * len(blocks(page)), "a fence that is not read"
    for block in blocks(page):
        if block.language in SHOWN:
            assert not block.mark, block
            assert not _LOOKS_TYPED.search(block.text), f"{block}: is it typed?"
            continue
        assert block.language in TYPED, f"{block}: {block.language!r} is no language of a block"
        mark, _, rest = block.mark.partition(": ")
        if mark == "not run":
            assert rest in REASONS, f"{block}: {rest!r} is no reason"
        elif block.mark.startswith("by "):
            test = REPOSITORY / block.mark.removeprefix("by ")
            assert page.rsplit("/")[-1] in test.read_text(), f"{block}: {test} does not name it"
        else:
            assert block.mark in {"", *MARKS}, f"{block}: {block.mark!r} is no mark"


def test_every_reason_is_one_of_a_block() -> None:
    given = {block.mark for page in PAGES for block in blocks(page)}
    assert {f"not run: {reason}" for reason in REASONS} <= given
