"""Verify that files are as they were recorded: all that is there, and its contents.

**Parameters.** A stream, or none for all of them; and what was committed after one time and up to
another (UTC), or everything. Without *Contents* only sizes and footers are looked at, which is fast
and finds what was deleted, cut short or replaced. With it, each event is read and compared with the
digest that its commit recorded. *At most* makes a run read so much, and continue the next time.

**Result.** The view `weir.damage` has what is not as recorded, since when, and what to do;
`weir.verified` says when each stream was looked at. The task fails if something is wrong.
`weir_stream_cuts` looks at the footers of new files by itself, and reads a part of the contents in
each run that has some, so that everything is read in turn.

**Repair.** Nothing is changed without it. With it, files that the database does not know become
garbage, which is deleted after the grace period, files that were renamed are moved back, and sweeps
may delete garbage that was kept because it differs. No event is lost by that. Everything else needs
a backup.

**On failure.** Run it again after the repair: what is right again leaves the view.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from weir.annex.verification.recorded import Unit
from weir.annex.verification.verify import Contents, VerifyReport, by_pyarrow, verify
from weir.controller.times import parse_span
from weir.errors import counted
from weir.installation.extras import has_spark, naming_extras
from weir.installation.opened import Installation
from weir.model.amounts import SIZE_PATTERN, parse_size
from weir.model.names import READABLE_STREAM_PATTERN
from weir.operations.action import UPKEEP, Action, Job
from weir.operations.form import ENGINES, SIZES, argument
from weir.operations.runner import run_if_main

MUCH = 1 << 30  # bytes: with less, Spark's start takes longer than reading here


@dataclass(frozen=True)
class Verify:
    """Verify that files are there, and that what is in them is what was committed."""

    stream: str = argument(
        "Stream", "The stream, as scope/stream. Empty: all streams.", "",
        pattern=READABLE_STREAM_PATTERN, names="stream",
    )  # fmt: skip
    contents: bool = argument(
        "Contents",
        "Read all events, and compare them with the digests that were recorded when they were "
        "committed. Off: look at sizes and footers only.",
        True,
    )
    repair: bool = argument(
        "Repair",
        "Make garbage of files that the database does not know, move back files that were renamed, "
        "and let sweeps delete garbage that was kept. Nothing else is changed.",
        False,
    )
    since: str = argument(
        "Since", "Only what was committed after this time, such as 2026-01-01T00:00:00Z.", "",
        section="More",
    )  # fmt: skip
    until: str = argument(
        "Until", "Only what was committed up to this time.", "", section="More",
    )  # fmt: skip
    at_most: str = argument(
        "At most",
        "How much to read, such as 10 GB; the next run with a maximum goes on from there. Empty: "
        "everything.",
        "", pattern=SIZE_PATTERN, examples=SIZES, section="More",
    )  # fmt: skip
    engine: str = argument(
        "Engine",
        "What reads the events: spark, in a job; pyarrow, in one process; auto: spark where there "
        "is much to read and pyspark is installed.",
        "auto", enum=list(ENGINES),
        section="More", beside="contents",
    )  # fmt: skip


def run(job: Job, arguments: Verify) -> VerifyReport:
    """Verify one stream or all; fail if something is not as recorded."""
    app = job.installation
    span = parse_span(arguments.since or None, arguments.until or None)
    done = verify(
        app,
        stream=arguments.stream,
        span=span if span != (None, None) else None,
        contents=contents_by(app, arguments.engine) if arguments.contents else None,
        most_bytes=parse_size(arguments.at_most),
        repair=arguments.repair,
    )
    if (error := done.error()) is not None:
        raise error
    return done.report()


def contents_by(app: Installation, engine: str) -> Contents:
    """Return what reads contents with an engine; `auto`: with Spark where there is much to read and
    pyspark is installed. Raises InvalidInput for `spark` if it is not."""
    here = by_pyarrow(app, contents=True)
    if engine == "spark" or (engine == "auto" and has_spark()):
        with naming_extras():
            from weir.annex.verification.contents_in_tasks import contents_by_spark

        there = contents_by_spark(app)
        least = MUCH if engine == "auto" else 0
        return lambda columns, units: (there if _bytes(units) >= least else here)(columns, units)
    return here


def _bytes(units: Sequence[Unit]) -> int:
    return sum(file.bytes for unit in units for file in unit.files)


def said(_arguments: Verify, report: VerifyReport) -> str:
    """Say what is as recorded."""
    files, streams = counted(report["files"], "file"), counted(report["streams"], "stream")
    repaired = f", {report['repaired']:,} repaired" if report["repaired"] else ""
    return f"{files} of {streams} are as recorded ({report['bytes']:,} bytes{repaired})"


ACTION = Action(__file__, Verify, run, said, UPKEEP, uses_spark=True)
run_if_main(ACTION, __name__)
