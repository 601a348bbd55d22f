"""The demo on a slice of its input, in this process with one session of Spark: its checks of every
flight hold, and find what is wrong. test_whole_demo.py tells it by the DAGs of a real Airflow."""

import time
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

import weir
from flights import checks
from flights.demo import Story, Told
from flights.runs import Ended, Run, Runs
from tests.acceptance.conftest import EVERY, environment
from weir.errors import WeirError
from weir.local.installation import Installation
from weir.local.throw_away import reaped
from weir.programs.store import StreamStore

pytestmark = [pytest.mark.release, pytest.mark.jvm, pytest.mark.timeout(900)]


class Here(Runs):
    """Runs of a story in this process, one after the other, in place of runs of DAGs."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.store: StreamStore | None = None  # once the story has its settings
        self._say = print

    def together(self, *runs: Run) -> list[Ended]:
        """Run the actions. Raises what they raise, unless a run must fail."""
        return [self._ended(run) for run in runs]

    def _ended(self, run: Run) -> Ended:
        assert self.store is not None
        begun, report, error = time.monotonic(), {}, ""
        try:
            report = self.store.act(run.dag.removeprefix("weir_"), run.form)
        except WeirError as refused:
            if not run.fails:
                raise
            error = str(refused)
        assert bool(error) == run.fails, run
        state, seconds = "failed" if error else "success", time.monotonic() - begun
        self.ended(run.dag, seconds, f"{run.about}: {error or run.outcome(report)}")
        return Ended(run, "", state, report, error, seconds)

    def _pause(self, dag: str, paused: bool) -> None:
        """Do nothing: nothing runs by itself."""


@pytest.fixture(scope="module")
def session() -> Iterator[SparkSession]:
    """Yield a session for the whole story: the one that other tests of this process share, if they
    have begun it."""
    shared = SparkSession.getActiveSession()
    found = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
        .getOrCreate()
    )
    yield found
    if shared is None:
        found.stop()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory, session: SparkSession) -> Iterator[Story]:
    """Yield the story on a Postgres of its own, with the demo's settings."""
    installation = Installation(tmp_path_factory.mktemp("weir") / "state", durable=False)
    with reaped(installation.postgres, installation.state), environment(installation):
        try:
            installation.start_postgres()
            installation.make_data_folders()
            runs = Here()
            made = Story(installation, every=EVERY, runs=runs)
            runs.store = weir.open(settings=made.settings, spark=session)
            with runs.store:
                yield made
        finally:
            installation.stop()
            installation.postgres.remove()


@pytest.fixture(scope="module")
def told(story: Story) -> Told:
    """The whole story, told."""
    return story.tell()


def test_all_checks_of_the_demo_hold(told: Told) -> None:
    assert len(told.checks) >= 21
    assert [str(check) for check in told.checks if not check.ok] == []


def test_the_report_shows_epochs_counts_groups_and_scales(told: Told, story: Story) -> None:
    flights = len(story.input.flights)
    for expected in ("0 (create)", "1 (scale)", f"{flights:,}", "on disk", "audit", "waiting",
                     "retained", "events truncated", "cold neighbours"):  # fmt: skip
        assert expected in told.report
    assert len(told.pictures) == 2
    for picture in told.pictures:
        assert '"marks": [{' in picture.read_text()
    assert "more events per second than" in told.report


def test_the_checks_fail_on_what_was_really_received_if_it_is_damaged(
    told: Told, story: Story
) -> None:
    trace = story.views.output("delays", "received", story.output)
    flights = story.input.flights
    assert checks.order_per_key(flights, trace).ok
    key = trace["tailnum"].value_counts().index[0]
    a, b = trace.index[trace["tailnum"] == key][:2]
    swapped = trace.copy()
    swapped.loc[[a, b], ["batch", "received"]] = trace.loc[[b, a], ["batch", "received"]].values
    assert not checks.order_per_key(flights, swapped).ok
    assert not checks.offsets_in_order(swapped).ok
    assert not checks.each_flight_once(flights, trace.drop(a)).ok
    assert not checks.offsets_in_order(trace.drop(a)).ok


def test_the_reader_login_may_change_nothing(told: Told, story: Story) -> None:
    for statement in ("UPDATE weir_internal.stream SET scope = scope", "DELETE FROM weir.streams",
                      "DELETE FROM weir_internal.job_run", "CREATE TABLE t ()",
                      "SELECT weir_internal.begin_compaction(1, 60)"):  # fmt: skip
        with pytest.raises(Exception, match=r"permission denied|cannot delete"):
            story.views.rows(statement)
