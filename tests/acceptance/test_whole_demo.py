"""The demo on a slice of its input, by the DAGs of an Airflow of its own."""

from collections.abc import Iterator

import pytest

from flights.demo import Story, Told
from tests.acceptance.conftest import EVERY, PERIODIC, begun, environment
from weir.local.installation import Installation

pytestmark = [pytest.mark.timeout(2400), pytest.mark.release]


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    with begun(tmp_path_factory.mktemp("weir")) as installation, environment(installation):
        yield installation


@pytest.fixture(scope="module")
def story(installation: Installation) -> Story:
    return Story(installation, every=EVERY)


@pytest.fixture(scope="module")
def told(story: Story) -> Told:
    return story.tell()


def test_all_checks_of_the_whole_demo_hold_and_its_report_shows_what_happened(
    told: Told, story: Story
) -> None:
    assert len(told.checks) >= 21
    assert [str(check) for check in told.checks if not check.ok] == []
    flights = len(story.input.flights)
    for expected in (f"{flights:,}", "retained", "events truncated", "cold neighbours"):
        assert expected in told.report
    assert len(told.pictures) == 2
    for picture in told.pictures:
        assert '"marks": [{' in picture.read_text()
    batches = "SELECT count(*) FROM batches WHERE state = 'committed'"
    assert story.views.number(batches) >= 3
    parts = story.views.output("delays", "delays", story.output)
    assert parts.groupby(["carrier", "day"])["batch"].nunique().max() > 1, "are added up"


@pytest.mark.parametrize("dag", PERIODIC)
def test_periodic_dags_are_unpaused_and_scheduled(
    installation: Installation, told: Told, dag: str
) -> None:
    found = installation.airflow.api().get(f"/dags/{dag}/details")
    assert found["is_paused"] is False
    assert found["timetable_summary"]
    assert found["next_dagrun_run_after"]
    assert found["catchup"] is False
    assert found["max_active_runs"] == 1
