"""Truncate a stream before a starting point, by hand.

**Parameters.** The stream, and the starting point, before which everything is truncated: `tail`
(all events), `time 2026-01-01T00:00:00Z`, `position` or `checkpoint NAME` of a reader group, or an
offset for each segment, `0.0=12, 1.0=7` (see the views `weir.retention_set` and `weir.positions`).

**First a dry run.** Unless *Dry run* is switched off, the run changes nothing. Its log and its
report (the XCom `return_value`) say how many events, bytes and files it would truncate, and how
many events each reader group would lose unread. Trigger it again with *Dry run* off to truncate
them: the task waits until a person approves exactly this loss (*Required Actions*).

**What it does not check.** It truncates unconditionally: it checks neither subscribers nor limits.
You cannot undo this. `weir_retention` truncates by itself what all subscribers have released; for
limits of age and size use `weir_update_stream`.

**On failure.** If the starting point is invalid, or behind the head, the run names the segment and
truncates nothing.
"""

import json
from dataclasses import dataclass

from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import counted
from weir.model.names import READABLE_STREAM_PATTERN, READER_GROUP_PATTERN, stream_name
from weir.operations.action import STREAMS, Action, Job
from weir.operations.approval import Loss, things
from weir.operations.form import LONGEST_CUT, argument, stream_argument
from weir.operations.runner import run_if_main
from weir.retention.manual_truncation import Truncation, in_words, truncate_before


@dataclass(frozen=True)
class TruncateStream:
    """Truncate all events of a stream before a starting point."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)
    cut: str = argument(
        "Truncate before",
        "Truncate all events before this point, for all readers. tail: all events; "
        "2026-01-01 09:00: what was appended up to that time (UTC); position, or checkpoint NAME: "
        "what the reader group has read by then; or a cut such as 0.0=12, 1.0=7.",
        minLength=1,
        maxLength=LONGEST_CUT,
        examples=[
            "tail",
            "time 2026-01-01T00:00:00Z",
            "position",
            "checkpoint NAME",
            "0.0=12, 1.0=7",
        ],
    )
    reader_group: str = argument(
        "Reader group", "The group of the position or checkpoint. Empty for any other point.",
        "", pattern=READER_GROUP_PATTERN, names="reader_group",
    )  # fmt: skip
    dry_run: bool = argument(
        "Dry run",
        "Only count what would be truncated, and what each reader group would lose unread; the "
        "report says it. Without it the stream is truncated, which you cannot undo.",
        True,
    )


def measure(job: Job, arguments: TruncateStream) -> Loss | None:
    """Return what would be truncated, and which groups would lose unread events."""
    return None if arguments.dry_run else _loss(job.database, arguments)


def _loss(database: Database, arguments: TruncateStream) -> Loss | None:
    found = truncate_before(
        database, stream_name(arguments.stream), arguments.cut, arguments.reader_group,
        dry_run=True, request_id="",
    )  # fmt: skip
    if found["already"]:
        return None
    lines = in_words(found, dry_run=True)[:-1]  # without how to do it
    losers = [*found["lost"], *found["lost_to_others"]]
    of = things(database, streams=[arguments.stream], groups=losers)
    return Loss(lines, {**found, **of}, {"cut": json.dumps(found["head"]), "reader_group": ""})


class TruncateReport(Truncation):
    """What was truncated, or would be."""

    dry_run: bool


def run(job: Job, arguments: TruncateStream) -> TruncateReport:
    """Truncate one stream."""
    dry_run = arguments.dry_run
    if not dry_run:
        check_warehouse_ownership(job.database, job.settings.warehouse)
    done = job.as_approved(
        lambda database: _loss(database, arguments),
        lambda database: truncate_before(
            database, stream_name(arguments.stream), arguments.cut, arguments.reader_group,
            dry_run=dry_run, request_id=job.request_id,
        ),
    )  # fmt: skip
    for line in in_words(done, dry_run=dry_run):
        job.say(line)
    return {**done, "dry_run": dry_run}


def said(arguments: TruncateStream, report: TruncateReport) -> str:
    """Say how much went."""
    done = "would be" if arguments.dry_run else "are"
    events = counted(report["events"], "event")
    return f"{events} of stream {arguments.stream} {done} truncated ({report['bytes']:,} bytes)"


ACTION = Action(
    __file__, TruncateStream, run, said, STREAMS, irreversible=True, rehearsed=True, measure=measure
)
run_if_main(ACTION, __name__)
