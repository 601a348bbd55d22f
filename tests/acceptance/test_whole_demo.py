"""The whole demo, on a slice of its input, in an Airflow of its own. CI tells its first half."""

import pytest

from flights.demo import Story
from tests.acceptance.conftest import EVERY, begun, environment

pytestmark = [pytest.mark.timeout(2400), pytest.mark.release]


def test_all_checks_of_the_whole_demo_hold_and_its_report_shows_what_happened(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    with begun(tmp_path_factory.mktemp("weir")) as installation, environment(installation):
        story = Story(installation, every=EVERY)
        told = story.tell()
        assert len(told.checks) >= 21
        assert [str(check) for check in told.checks if not check.ok] == []
        flights = len(story.input.flights)
        for expected in (f"{flights:,}", "retained", "events truncated", "cold neighbours"):
            assert expected in told.report
        assert len(told.pictures) == 3
        for picture in told.pictures:
            assert "epoch 1" in picture.read_text()
        batches = "SELECT count(*) FROM batches WHERE state = 'committed'"
        assert story.views.number(batches) >= 3
        parts = story.views.output("delays", "delays", story.output)
        assert parts.groupby(["carrier", "day"])["batch"].nunique().max() > 1, "are added up"
