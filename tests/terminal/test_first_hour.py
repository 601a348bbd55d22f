"""From a clone to a consumer of one's own file, in a terminal, as README.md says it."""

import time
from pathlib import Path

import pytest

from tests.terminal.first_hour import INSTALLING, commands, prepare, type_all
from weir.local.installation import Installation


def test_it_takes_at_most_ten_commands_with_the_clone() -> None:
    typed = commands()
    assert typed[0] == INSTALLING
    assert len(typed) + 2 + 1 <= 10, "git clone and cd, and the && in the first line"


@pytest.mark.release
@pytest.mark.jvm
def test_it_works_as_it_is_written_within_three_minutes(tmp_path: Path) -> None:
    home = tmp_path / "home"
    prepare(home)
    begun = time.monotonic()
    try:
        said = type_all(home)
    finally:
        Installation(home / ".weir").remove()
    assert time.monotonic() - begun < 180
    assert "1,000 events appended" in said["ingest"]
    assert len(said["tail"].splitlines()) == 11
    assert "totals: 1,000 events in 1 batch" in said["process"]
    assert said["lag"].split()[7:10] == ["totals", "shop/orders", "0"]
