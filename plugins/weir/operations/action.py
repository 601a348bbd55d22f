"""An action: what people, programs and schedules ask Weir to do, and what its run gets."""

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from weir.database.connection import Database
from weir.errors import Incomplete
from weir.history.job_runs import RunId, record_progress
from weir.installation.opened import Installation, remote_spark
from weir.operations.approval import Loss, check_approved, is_done
from weir.operations.form import Form
from weir.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROGRESS_EVERY = 5.0  # seconds between two writes of the progress
F = TypeVar("F", bound=Form)
R = TypeVar("R", bound=Mapping[str, object])  # the report of a run, as weir.job_runs has it


def _print(line: str) -> None:
    print(f"weir: {line}", flush=True)


@dataclass
class Job:
    """What the function of a job gets."""

    name: str
    run: RunId
    settings: Settings
    database: Database
    given: dict[str, object] = field(default_factory=dict)  # the arguments that are given, by name
    recorded: bool = False  # whether job_run has a row of it, so that its failure can be recorded
    functions: list[dict[str, str]] = field(default_factory=list)  # that it calls, for its report
    log: Callable[[str], None] = _print
    start_spark: "Callable[[], SparkSession] | None" = None
    own: Mapping[str, Callable[..., object]] = field(
        default_factory=dict
    )  # by name, of the program
    approved: dict[str, object] | None = None  # the facts of the loss that a person has approved
    sentence: str = ""  # what became of it
    pages: str = ""  # where its Spark shows what runs, if it does
    _spark: "SparkSession | None" = field(default=None)
    _recorded_at: float = field(default=0.0)

    @property
    def request_id(self) -> str:
        """The id of the request, equal in all tries."""
        return self.run.request_id

    @property
    def spark(self) -> "SparkSession":
        """The Spark session, made when first used: most metadata jobs need none
        (docs/decisions/0101). Raises what `weir.spark.base.session.session` raises.
        """
        if self._spark is None:
            from weir.spark.base.session import session

            given = self.start_spark
            self._spark = (
                session(f"weir {self.name}", remote_spark(self.settings))
                if given is None
                else given()
            )
            if self.settings.function_path:
                from weir.spark.base.python_workers import search

                search(self._spark, self.settings.function_path)
        return self._spark

    def end_spark(self) -> None:
        """End the session, if it is of a server and the job's own."""
        if self._spark is not None and self.start_spark is None and remote_spark(self.settings):
            from weir.spark.base.connect import end

            end(self._spark)
            self._spark = None

    @property
    def installation(self) -> Installation:
        """What the library needs of the job."""
        return Installation(
            self.settings, self.database, str(self.run), self.say, lambda: self.spark
        )

    def function(self, name: str) -> Callable[..., object]:
        """Load a function of a user as the settings allow it, or take that of this name in `own`.
        Say and record its file and its version. Raises InvalidInput as `load_function` does."""
        from weir.consumers.function_source import source_file, source_of
        from weir.consumers.user_functions import load_function

        settings = self.settings
        function = self.own.get(name) or load_function(
            name, settings.function_packages, settings.function_path
        )
        file, version = source_file(function), source_of(function).version
        self.functions.append({"name": name, "file": file, "version": version})
        self.say(f"function {name} of {file or 'no file'}, version {version or 'unknown'}")
        return function

    def say(self, line: str) -> None:
        """Print a line of progress to the task's log, or to the program that runs the job, and
        every few seconds record it in job_run.
        """
        self.log(line)
        if time.monotonic() - self._recorded_at > PROGRESS_EVERY:
            self._recorded_at = time.monotonic()
            self.database.transaction(lambda c: record_progress(c, self.run, line))

    def say_all(self, lines: Sequence[str]) -> None:
        """Print lines as `say` does."""
        for line in lines:
            self.say(line)

    def as_approved(
        self, measure: Callable[[Database], Loss | None], work: Callable[[Database], R]
    ) -> R:
        """Do the work, in one transaction with a comparison of what it loses with what was
        approved, if somebody was asked. `measure` leaves the locks that it takes.

        Raises Conflict if something else would be lost than what was approved; then nothing is
        done.
        """
        if (approved := self.approved) is None:
            return work(self.database)

        def together(database: Database) -> R:
            if not database.transaction(lambda c: is_done(c, self.request_id)):
                check_approved(approved, measure(database))
            return work(database)

        return self.database.together(together)

    def tried_or_done(
        self,
        dry_run: bool,
        tried: Callable[[Database], tuple[R, Loss]],
        work: Callable[[Database], R],
    ) -> R:
        """Say what the work would lose, if only that is wanted, and return the report of that; else
        do it as it was approved."""
        if not dry_run:
            return self.as_approved(lambda database: tried(database)[1], work)
        found, loss = tried(self.database)
        self.say_all(loss.tried)
        return found


STREAMS, READER_GROUPS, DATA, UPKEEP = "streams", "reader groups", "data", "upkeep"


def complete(
    report: R,
    tried: Sequence[Mapping[str, object]],
    *,
    done: int = 0,
    failed: Sequence[str] = (),
) -> R:
    """Return the report of a job that tried many things, if none of them failed.

    `tried`: what the report says of each; one that failed has an `error`. `done`, `failed`: how
    many others were done, and why others failed. Raises Incomplete with the report; it is final if
    all that failed are (`retryable` is false).
    """
    final = [one for one in tried if one.get("retryable") is False]
    errors = [one["error"] for one in tried if "error" in one]
    count, errors = len(tried) + done + len(failed), [*errors, *failed]
    if errors:
        raise Incomplete(
            "some_failed",
            f"{len(errors)} of {count} failed; the first failure is: {errors[0]}",
            report=report,
            retryable=len(final) < len(errors),
        )
    return report


@dataclass(frozen=True)
class Action(Generic[F, R]):
    """What people, programs and schedules ask Weir to do, in one file of `spark_jobs`: its form,
    its page, and its run.

    `file`: that file, which spark-submit runs. `form`: its arguments, of which forms, commands and
    methods are made. `run`: does it in a job, and returns its report. `said`: returns the sentence
    of such a report, with which the run ends where somebody reads along. `subject`: what it is
    about. `irreversible`: whether its effect
    can't be undone. `moves_data`: whether it appends events to streams, in a job that takes long.
    `uses_spark`: whether its run usually needs Spark, so that the engine "auto" submits it.
    `rehearsed`: whether its run is one transaction, so that it can be tried and undone to see
    whether it can succeed. `check`: what else it can say without Spark, from files and functions.
    `measure`: returns what it would lose, for a person to approve; None if that is nothing.
    `kept`: the arguments that the row of a run that did not begin may have; None: all.
    """

    file: str
    form: type[F]
    run: Callable[[Job, F], R]
    said: Callable[[F, R], str]
    subject: str
    irreversible: bool = False
    moves_data: bool = False
    uses_spark: bool = False
    rehearsed: bool = False
    check: "Callable[[Job, F], None] | None" = None
    measure: "Callable[[Job, F], Loss | None] | None" = None
    kept: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Its name: that of its file."""
        return Path(self.file).stem

    @property
    def page(self) -> str:
        """What Airflow shows of it, as Markdown: the docstring of its file."""
        return f"### {inspect.cleandoc(self.run.__globals__['__doc__'])}\n"

    @property
    def code(self) -> str:
        """What Airflow shows of its task, as Markdown: its file, and the source of its run."""
        return f"Runs `spark_jobs/{self.name}.py`:\n\n```python\n{inspect.getsource(self.run)}```\n"
