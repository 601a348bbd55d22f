"""The demo: a year of flights through a stream, from nothing (`make demo`).

Everything happens through Airflow's DAGs, triggered over its REST API as the UI does it; every task
is a PySpark job. It has a state folder of its own (WEIR_STATE, default .weir-demo), begins anew
each time, and leaves that state: `make up STATE=.weir-demo` opens it.
"""

import contextlib
import logging
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from flights import checks, reference
from flights.checks import Check
from flights.hours import HOURS, LAST_BUSY, QUIET, Replay
from flights.input import DECLARED, Input, write_input
from flights.report import Views, draw_stream, report
from flights.runs import Run, Runs
from weir.database.connection import Database
from weir.errors import Conflict, WeirError
from weir.local.installation import Installation
from weir.local.state_folder import StateFolder
from weir.operations.runner import SHORT_JOB
from weir.settings import load

FLIGHTS, DEPARTURES, DELAYS = "nyc/flights", "nyc/departures", "nyc/delays"
SETTINGS = Path(__file__).with_name("weir.toml")
LOCK = "demo.lock"  # tells a state folder that the demo made from one with somebody's streams


@dataclass(frozen=True)
class Told:
    """The result of the story."""

    checks: list[Check]
    report: str
    pictures: list[Path]


class Story:
    """The story, chapter by chapter. Airflow and Postgres are running, with the demo's settings."""

    def __init__(self, installation: Installation, *, every: int = 1) -> None:
        """`every`: take only every n-th flight."""
        settings = load(dict(os.environ) | installation.environment())
        self.warehouse = Path(settings.warehouse)
        self.output = Path(settings.output_roots[0])
        self.pictures = installation.state / "demo"
        self.root = Path(settings.input_roots[0])
        self.input: Input = write_input(self.root, every)
        self.database = Database(
            installation.postgres.dsn("weir", "weir_view"), patience=30.0, connect_patience=30.0
        )
        self.views = Views(self.database)
        login = installation.postgres.dsn("weir", "weir_app")
        self.jobs_login = Database(login, patience=30.0, connect_patience=30.0)
        self.settings = replace(settings, database=login)
        self.replay = Replay(self.jobs_login, self.settings, self.input.hours)
        self.runs = Runs(installation.airflow.api(), self.database, _say)
        self.checks: list[Check] = []

    def tell(self) -> Told:
        """Tell the story. Raises WeirError if a run ends in another way than it should."""
        _say(f"{len(self.input.flights):,} flights in {len(self.input.files)} files, one per month")
        with contextlib.ExitStack() as paused:
            # The scheduled runs of these would sometimes come before their place in the story, or
            # beside it, where they have nothing to do.
            for dag in ("weir_retention", "weir_scale", "weir_adjunct", "weir_upkeep"):
                paused.enter_context(self.runs.paused(dag))
            self.create()
            self.append_and_scale()
            self.consume("the first half of the year")
            self.retain()
            self.second_half()
            self.check_flights()
            self.check_the_rest()
            self.checks.append(checks.proven(self.settings, HOURS))
            pictures = [
                draw_stream(self.jobs_login, FLIGHTS, self.pictures),
                draw_stream(self.jobs_login, HOURS, self.pictures),
            ]
            text = report(self.views, FLIGHTS, self.warehouse)
        self.database.dispose()
        self.jobs_login.dispose()
        return Told(self.checks, text, pictures)

    def create(self) -> None:
        """Make what the file declares, and append the reference data."""
        self.runs.chapter("Declare streams, groups, stores and a consumer; append reference data")
        self.runs.together(
            Run("weir_apply", {"file": DECLARED, "dry_run": False}, DECLARED, _applied)
        )
        for stream in reference.TABLES:
            begun = time.monotonic()
            path = self.input.reference[stream]
            done = reference.append(self.root / path, stream, self.settings)
            self.runs.ended("a program", time.monotonic() - begun, f"{path} -> {stream}: {done}")

    def append_and_scale(self) -> None:
        """Append January to June, with a split after March; try to append what Weir must refuse."""
        self.runs.chapter("Append months, and split a segment in the middle")
        appended = self.replay.until(LAST_BUSY)
        with self.runs.unpaused("weir_scale"):
            _, departures, _ = self.runs.together(
                self._ingest(1, 3, "January to March"),
                Run("weir_ingest", {"stream": DEPARTURES, "files": [self.input.csv_file],
                                    "format": "csv", "null_value": "NA"},
                    f"January as csv -> {DEPARTURES}", _appended),
                self._scale(f"{appended} -> {HOURS}"),
            )  # fmt: skip
        largest = self.views.rows(
            """SELECT segment FROM segments WHERE stream = :s AND active
            ORDER BY events DESC LIMIT 1""",
            s=FLIGHTS,
        )[0].segment
        held = {"stream": FLIGHTS, "files": self.input.paths(2, 2) + self.input.paths(4, 4)}
        again, _, refused = self.runs.together(
            self._ingest(1, 3, "January to March again"),
            Run("weir_scale_stream", {"stream": FLIGHTS, "segments": [largest], "parts": 2},
                f"split segment {largest}, which has the most events", _scaled),
            Run("weir_ingest", held, "February once more, with April", fails=True),
        )  # fmt: skip
        self.runs.together(self._ingest(4, 6, "April to June"))

        self.checks += [
            checks.quarantined(
                self.input.csv_rows, self.input.csv_rows_without_key,
                departures.report["events"], departures.report["rejected"],
            ),
            Check("the same files again append nothing", again.report["repeated"] is True,
                  f"transaction {again.report['transaction_number']} had appended them"),
            Check("a file that is in another append is refused by name",
                  repr(held["files"][0]) in refused.error, f"named {held['files'][0]!r}"),
        ]  # fmt: skip

    def consume(self, what: str) -> None:
        """Call the function with everything that is unread."""
        self.runs.chapter("Consume it, exactly once: delays per carrier and day")
        self.runs.together(
            Run("weir_process", {"reader_group": "delays"}, f"{what} -> {DELAYS} and Parquet",
                _processed),
        )  # fmt: skip

    def retain(self) -> None:
        """Let retention delete what the subscriber has consumed, and keep July, which it
        has not.
        """
        self.runs.chapter("Truncate what is consumed, and keep July, which is not")
        consumed = self.views.files(FLIGHTS)
        self.runs.together(
            self._ingest(7, 7, "July"),
            Run("weir_checkpoints", {}, "release what delays has consumed", _checkpointed),
        )

        def truncated(_: dict[str, Any]) -> str:
            stream = self.views.stream(FLIGHTS)
            events = stream.events_appended - stream.events_retained
            files = sum(not (self.warehouse / path).exists() for path in consumed)
            return f"{events:,} events truncated, their {files} files deleted"

        with self.runs.unpaused("weir_retention"):
            self.runs.together(
                Run("weir_stream_cuts", {}, "record the tails", _captured),
                Run("weir_retention", {"dry_run": False}, "truncate and delete", truncated),
            )
        stream = self.views.stream(FLIGHTS)
        kept = len([path for path in self.views.files(FLIGHTS) if (self.warehouse / path).exists()])
        self.checks += [
            checks.equal("what was consumed was truncated",
                         consumed=self.views.consumed("delays"),
                         truncated=stream.events_appended - stream.events_retained,
                         from_January_to_June=self.input.rows(1, 6)),
            checks.files_gone(self.warehouse / path for path in consumed),
            checks.equal("what was not consumed is kept",
                         retained=stream.events_retained, in_July=self.input.rows(7, 7)),
            checks.equal("and so are its files",
                         listed=len(self.views.files(FLIGHTS)), on_disk=kept),
        ]  # fmt: skip

    def second_half(self) -> None:
        """Append August to December; the group continues at its position."""
        self.runs.chapter("Append the rest of the year")
        appended = self.replay.until(len(self.input.hours))
        self.replay.pass_time(QUIET)
        scale = self._scale(f"{appended} -> {HOURS}, and then none for {QUIET // 60} minutes")
        with self.runs.unpaused("weir_scale"):
            self.runs.together(self._ingest(8, 12, "August to December"), scale)
        self.consume("the second half of the year")
        self.runs.together(
            Run("weir_stream_cuts", {}, "record the tails", _captured),
            Run("weir_checkpoints", {}, "release what delays has consumed", _checkpointed),
            Run("weir_back_test", {"stream": HOURS, "target_rate": 2, "read_files": False},
                f"twice the target rate, on what {HOURS} has recorded", _tried),
        )  # fmt: skip

    def check_flights(self) -> None:
        """Check that every flight is accounted for: counts, order, results."""
        self.runs.chapter("Check the result")
        flights = self.input.flights
        stream = self.views.stream(FLIGHTS)
        trace = self.views.output("delays", "received", self.output)
        in_parquet = self.views.output("delays", "delays", self.output)
        in_stream = self.views.events(DELAYS, self.warehouse, [*checks.BY, *checks.STATISTICS])
        departures = [self.views.stream(name) for name in (DEPARTURES, f"{DEPARTURES}.rejected")]
        later = self.views.rows(
            """SELECT DISTINCT epoch FROM transactions JOIN input_files
            USING (stream, transaction_number)
            WHERE stream = :s AND path = ANY(:paths) AND transactions.state = 'committed'""",
            s=FLIGHTS, paths=self.input.paths(4, 12),
        )  # fmt: skip
        self.checks += [
            checks.equal("every flight is accounted for", in_the_input=len(flights),
                         appended=stream.events_appended, consumed=self.views.consumed("delays"),
                         received_by_the_function=len(trace)),
            checks.each_flight_once(flights, trace),
            checks.order_per_key(flights, trace),
            checks.offsets_in_order(trace),
            checks.same_statistics(f"stream {DELAYS}", flights, in_stream),
            checks.same_statistics("Parquet", flights, in_parquet),
            *reference.same_details(flights, self.input.tables,
                                    self.views.output("delays", "details", self.output)),
            checks.equal("quarantined rows are in a stream of their own",
                         rows_in_the_csv=self.input.csv_rows,
                         in_both_streams=sum(s.events_appended for s in departures)),
            Check("appends after the split are in the new epoch",
                  [row.epoch for row in later] == [1],
                  "from April on: epoch " + ", ".join(str(row.epoch) for row in later)),
        ]  # fmt: skip

    def check_the_rest(self) -> None:
        """Check scales by load, the group that is no subscriber, and files."""
        stream = self.views.stream(FLIGHTS)
        audit = self.views.rows(
            "SELECT unread_events, lost_events FROM lag WHERE reader_group = 'audit'"
        )[0]
        listed = [row.path for row in self.views.rows("SELECT path FROM data_files")]
        garbage = [row.path for row in self.views.rows("SELECT path FROM garbage_files")]
        self.checks += [
            checks.equal("the replayed hours are all in the stream whose segments follow the load",
                         appended=self.views.stream(HOURS).events_appended,
                         flights=sum(hour.num_rows for hour in self.input.hours)),
            checks.scaled_by_load(self.views.rows(
                """SELECT action, reason FROM scale_decisions
                WHERE stream = :s AND action <> 'none' ORDER BY decided_at""", s=HOURS)),
            checks.equal("audit lost what was truncated, because it is not a subscriber",
                         lost=audit.lost_events, from_January_to_June=self.input.rows(1, 6)),
            checks.equal("audit still has the rest to read", unread=audit.unread_events,
                         retained=stream.events_retained,
                         from_July_to_December=self.input.rows(7, 12)),
            checks.files_are_those_listed(
                self.warehouse, [*listed, *reference.files(self.jobs_login)], garbage),
        ]  # fmt: skip

    def _scale(self, what: str) -> Run:
        def decided(_: dict[str, Any]) -> str:
            # This run decided, or the scheduled one that begins when the DAG is unpaused.
            found = self.views.rows(
                """SELECT reason FROM scale_decisions WHERE stream = :s AND action <> 'none'
                ORDER BY decided_at DESC LIMIT 1""",
                s=HOURS,
            )
            return str(found[0].reason) if found else "nothing to do"

        return Run("weir_scale", {"streams": [HOURS]}, what, decided)

    def _ingest(self, first: int, last: int, what: str) -> Run:
        form = {"stream": FLIGHTS, "files": self.input.paths(first, last)}
        return Run("weir_ingest", form, f"{what} -> {FLIGHTS}", _appended)


def _applied(report: dict[str, Any]) -> str:
    return f"{len(report['changes'])} streams, stores, reader groups and consumers"


def _appended(report: dict[str, Any]) -> str:
    if report["repeated"]:
        return "nothing appended, the stream has them"
    rejected = f", {report['rejected']:,} quarantined" if report["rejected"] else ""
    return f"{report['events']:,} events{rejected}"


def _scaled(report: dict[str, Any]) -> str:
    created = " and ".join(name for name, _, _ in report["created"])
    return f"epoch {report['epoch']} with {created}"


def _tried(report: dict[str, Any]) -> str:
    return (
        f"{report['with the policy']['scales']} scales and at most "
        f"{report['with the policy']['most_segments']} segments, instead of "
        f"{report['recorded']['scales']} and {report['recorded']['most_segments']}"
    )


def _processed(report: dict[str, Any]) -> str:
    count = len(report["batches"])
    return f"{report['events']:,} events in {count} batch{'es' if count > 1 else ''}"


def _checkpointed(report: dict[str, Any]) -> str:
    groups = " and ".join(one["reader_group"] for one in report.get("checkpoints", []))
    return f"{groups} moved" if groups else "nothing has moved since the last"


def _captured(report: dict[str, Any]) -> str:
    count = len(report.get("captured", []))
    return f"{count} stream{'s' if count != 1 else ''} moved since the last"


def _say(line: str) -> None:
    print(line, flush=True)


def run(installation: Installation) -> bool:
    """Tell the story to the user; return whether all checks hold."""
    _say("Starting Postgres, Spark and Airflow ...")
    installation.spark.want(True)
    installation.start()
    airflow = installation.airflow
    _say(f"Airflow's UI: {airflow.url} (passwords: {airflow.passwords_file})")
    result = Story(installation).tell()
    _say(f"\n{result.report}\n\nChecks")
    for check in result.checks:
        _say(f"  {check}")
    failed = sum(not check.ok for check in result.checks)
    _say("\nPictures: " + "  ".join(str(path) for path in result.pictures))
    _say(f"{failed} of {len(result.checks)} checks FAILED." if failed
         else f"All {len(result.checks)} checks hold.")  # fmt: skip
    return not failed


@contextmanager
def begun_anew(state: Path) -> Iterator[Installation]:
    """Yield a new installation in `state`, in place of what an earlier demo left, and stop it at
    the end.

    Raises Conflict for a folder with anything in it that the demo did not make.
    """
    made_before = (state / LOCK).is_file()
    if not made_before and state.exists() and any(state.iterdir()):
        raise Conflict(
            "folder_not_of_demo",
            f"{state} was not made by the demo, which would remove all that is in it: choose "
            "another folder with STATE=.",
        )
    with StateFolder(state).lock(LOCK.removesuffix(".lock")):
        if made_before:
            _remove(Installation(state))
        installation = Installation(state)
        try:
            yield installation
        finally:
            installation.stop()


def _remove(installation: Installation) -> None:
    installation.stop()
    installation.postgres.remove()
    for path in installation.state.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name != LOCK:  # kept, so that an interrupted removal can continue
            path.unlink()


def main() -> int:
    """Run the command line; return 0 if all checks hold."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logging.getLogger("weir").setLevel(logging.INFO)
    for number in (signal.SIGTERM, signal.SIGHUP):  # like Ctrl-C: stop everything that was started
        signal.signal(number, signal.default_int_handler)
    state = Path(os.environ.get("WEIR_STATE", ".weir-demo")).absolute()
    for name in [name for name in os.environ if name.startswith("WEIR_")]:
        del os.environ[name]  # settings of another installation
    os.environ["WEIR_CONFIG"] = str(SETTINGS)
    # All jobs of the story are short.
    os.environ["SPARK_SUBMIT_OPTS"] = (
        f"{SHORT_JOB} {os.environ.get('SPARK_SUBMIT_OPTS', '')}".strip()
    )
    try:
        with begun_anew(state) as installation:
            holds = run(installation)
            _say("Stopping Airflow and Postgres ...")
        _say(f"The state is kept: `make up STATE={state}` opens it.")
        return 0 if holds else 1
    except WeirError as error:
        _say(f"The demo failed: {error}")
    except KeyboardInterrupt:
        _say("Interrupted.")
        return 130
    return 1


if __name__ == "__main__":
    sys.exit(main())
