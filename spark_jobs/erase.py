"""Erase events from a stream and from the streams that were made of it, with a certificate.

**Parameters.** The stream, and which of its events: those of routing keys, or those that fulfil a
condition over its columns. Why: the certificate says it. Streams that consumers wrote are searched
for the keys in the column of the same name, or in *Subject*, and `<stream>.rejected` in its rows;
so are adjunct stores, and the Parquet outputs and tables that consumers wrote.
With *Dry run*, which is on at first, the run only counts the events, and lists what it would leave.
Without it the task shows that, and waits until a person approves it (*Required Actions*). You
cannot undo this.

**Result.** No reader sees anything of it, but that the events are gone: every other event keeps
its offset and its clock. Files with the events are deleted at once, but for those that an open
batch may be reading. When the last one is deleted, the certificate is signed, by this run or by
`weir_upkeep`: the view `weir.certificates` has it, and what it waits for.

**On failure.** Run it again: each stream is erased in one transaction, and the same run continues.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import cast

from weir.annex.erasure.asked import masked
from weir.annex.erasure.everywhere import EraseReport, Everywhere, Measured, Wanted
from weir.annex.erasure.find import Each, Look, here
from weir.annex.erasure.sentences import NOT_KEPT, RECORDED, Recorded
from weir.controller.read_plan import FileSlice
from weir.errors import InvalidInput, counted
from weir.front_ends import give
from weir.history.job_runs import BY_HAND, replace_arguments
from weir.installation.extras import has_spark
from weir.model.names import LONGEST_KEY, READABLE_STREAM_PATTERN, stream_name
from weir.model.stream_configuration import LONGEST_EXPRESSION
from weir.operations.action import STREAMS, Action, Job
from weir.operations.approval import Loss, check_approved
from weir.operations.entries import LINE_PATTERN
from weir.operations.form import argument, stream_argument
from weir.operations.runner import run_if_main
from weir.settings import Settings

# With fewer events to look at, Spark's start takes longer than looking here. To open a file costs
# as much as some events.
MUCH, OPENING = 50_000_000, 5_000


@dataclass(frozen=True)
class Erase:
    """Erase events from a stream and from the streams that were made of it, with a certificate."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)
    reason: str = argument(
        "Reason", "Why, as the certificate says it; without what is to be forgotten.",
        minLength=1, maxLength=2000, pattern=LINE_PATTERN,
        examples=["request for erasure, ticket 4711"],
    )  # fmt: skip
    keys: list[str] = argument(
        "Keys", "The routing keys whose events are erased, one per line, with their blanks. "
        "An empty line beside others is no key.", [],
        items={"type": "string", "maxLength": LONGEST_KEY, "exact": True}, maxItems=1000,
    )  # fmt: skip
    dry_run: bool = argument(
        "Dry run",
        "Only count the events and files of each stream, and list what would be left. Without it "
        "they are erased, which you cannot undo.",
        True,
    )
    condition: str = argument(
        "Condition",
        "In place of keys: a condition over the columns, such as customer = 'C123'. It is about "
        "this stream only.",
        "", section="More", maxLength=LONGEST_EXPRESSION,
    )  # fmt: skip
    subject: str = argument(
        "Subject",
        "The column that has the keys in the streams and outputs that consumers made of this "
        "one. Empty: the column with the name of its routing key.",
        "", section="More", maxLength=300, beside="keys",
    )  # fmt: skip
    requested_by: str = argument(
        "Requested by", "Who asks for it, as the certificate says it. Empty: the run.", "",
        section="More", maxLength=300, pattern=LINE_PATTERN,
    )  # fmt: skip
    everything: bool = argument(
        "Everything", "Erase even if the condition is true for every event of the stream.", False,
        section="More", beside="condition",
    )  # fmt: skip


_COUNTER_EXAMPLES = Recorded("UPDATE counter_example", ("what",))


def _everywhere(job: Job, arguments: Erase) -> Everywhere:
    wanted = Wanted(
        stream_name(arguments.stream), tuple(dict.fromkeys(arguments.keys)),
        arguments.condition.strip(), arguments.subject.strip(), arguments.everything,
    )  # fmt: skip

    recorded = (*RECORDED, _COUNTER_EXAMPLES)
    return Everywhere(job.database, job.settings, wanted, recorded, _each(job))


def _each(job: Job) -> Each:
    """Return what looks at files: tasks of Spark, if it is much, and the run has or may start a
    session; else this process."""

    def each(settings: Settings, look: Look, slices: Sequence[FileSlice]) -> list[str]:
        where: Each = here
        if sum(part.rows + OPENING for part in slices) >= MUCH and has_spark():
            from weir.annex.erasure.places_in_tasks import in_tasks

            try:
                spark = job.spark
                where = in_tasks(lambda: spark)
            except InvalidInput as error:
                if error.code not in ("spark_not_given", "session_unsupported"):
                    raise
        return where(settings, look, slices)

    return each


def measure(job: Job, arguments: Erase) -> Loss | None:
    """Return what would be erased; None if nothing matches."""
    if arguments.dry_run or (whole := _everywhere(job, arguments)).request(job.request_id):
        return None  # another try continues what was approved
    found = whole.measure()
    _check_not_all(arguments, found)
    return _loss(arguments, found) if found.something else None


def _check_not_all(arguments: Erase, found: Measured) -> None:
    if arguments.condition and found.all_of_it and not arguments.everything:
        raise InvalidInput(
            "argument_missing",
            f"the condition is true for every event of stream {arguments.stream}; correct it, or, "
            f"if that is meant, {give(everything=True)}.",
        )


def _loss(arguments: Erase, found: Measured) -> Loss:
    lines = [
        f"would erase {counted(events, 'event')} of stream {name}, in {counted(files, 'file')}"
        for name, (events, files) in found.streams.items()
        if events
    ]
    if arguments.condition and found.all_of_it:
        lines.append(f"that is every event of stream {arguments.stream}")
    lines += [
        f"would erase {counted(rows, 'row')} of adjunct store {name}"
        for name, rows in found.stores.items()
        if rows
    ]
    lines += [
        f"would erase {counted(rows, 'row')} of output {name}"
        for name, rows in found.outputs.items()
        if rows
    ]
    lines.append(_asked(arguments))
    none = [name for name, (events, _) in found.streams.items() if not events]
    lines += [f"would find nothing in {', '.join(none)}"] if none else []
    lines += [f"would leave {one.line()}" for one in found.remains]
    streams = {name: list(counts) for name, counts in found.streams.items()}
    gone = {"streams": streams, "stores": found.stores, "outputs": found.outputs}
    gone |= {
        "places": found.places,
        "asked": {
            "reason": arguments.reason, "requested_by": arguments.requested_by,
            "keys": len(set(arguments.keys)), "condition": masked(arguments.condition),
        },
    }  # fmt: skip
    return Loss(lines, {**gone, "remains": [asdict(one) for one in found.remains]})


def _asked(arguments: Erase) -> str:
    """Say what is asked, why, and by whom."""
    keys = len(set(arguments.keys))
    what = f"of {counted(keys, 'key')}" if keys else f"where {arguments.condition.strip()}"
    by = arguments.requested_by or "nobody who is named"
    return f"these are the events {what}; {by} asks for it, because: {arguments.reason}"


def run(job: Job, arguments: Erase) -> EraseReport:
    """Erase from one stream and its copies. The row of the run forgets the keys first."""
    kept = {
        **job.given, "keys": [NOT_KEPT for _ in arguments.keys],
        "condition": arguments.condition and NOT_KEPT,
    }  # fmt: skip
    job.database.transaction(lambda c: replace_arguments(c, job.run, kept))
    whole = _everywhere(job, arguments)
    if arguments.dry_run:
        found = whole.measure()
        if not found.something:
            job.say(_nothing(arguments))
        loss = _loss(arguments, found)
        job.say_all(loss.tried)
        return cast(EraseReport, {**loss.facts, "dry_run": True})
    if job.approved is not None and whole.request(job.request_id) is None:
        check_approved(job.approved, _loss(arguments, whole.measure()))
    done = whole.erase(
        job.request_id, arguments.requested_by or str(job.run), arguments.reason, job.say,
        by_hand=job.run.dag_id == BY_HAND,
    )  # fmt: skip
    if not (done["events"] or done["stores"] or done["outputs"]):
        job.say(_nothing(arguments))
    return done


def _nothing(arguments: Erase) -> str:
    what = "the condition is true for" if arguments.condition else "the keys are those of"
    return f"{what} no event of stream {arguments.stream}, or of what was made of it"


def said(arguments: Erase, report: EraseReport) -> str:
    """Say how much was erased."""
    if arguments.dry_run:
        events = sum(one[0] for one in report["streams"].values() if isinstance(one, list))
        return f"{counted(events, 'event')} would be erased: this was a dry run"
    signed = (
        "the certificate is signed" if report["signed"] else "the certificate is not signed yet"
    )
    if not (report["events"] or report["stores"] or report["outputs"]):
        return _nothing(arguments)
    return f"erased {counted(report['events'], 'event')}; {signed}"


ACTION = Action(
    __file__, Erase, run, said, STREAMS, irreversible=True, measure=measure,
    kept=("stream", "reason", "requested_by", "dry_run"),  # not what is to be erased
)  # fmt: skip
run_if_main(ACTION, __name__)
