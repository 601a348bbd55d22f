"""Take a reader out of its group by hand.

**Parameters.** The reader and, if you know it, how far it got in its open batch. Without that,
other readers continue at the last committed position and take over the whole batch. Leases do the
same by themselves, only later.

**On failure.** One transaction. Everything that the reader still does is refused.
"""

from dataclasses import dataclass

from weir.controller.ownership import check_warehouse_ownership
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.form import LONGEST_CUT, argument, reader_group_argument
from weir.operations.runner import run_if_main
from weir.reader_groups.groups.readers import ReaderGone, reader_offline


@dataclass(frozen=True)
class ReaderOffline:
    """Take a reader out of a group by hand."""

    reader_group: str = reader_group_argument()
    reader: str = argument(
        "Reader", "The reader's id (see the view weir.readers).", minLength=1,
        maxLength=1_000,
    )  # fmt: skip
    position: str = argument(
        "Position",
        "How far it has read in its open batch, such as 0.0=12, 1.0=7 (in several streams "
        '{"nyc/flights": {"0.0": 12}}). Empty: others continue at the last committed position, '
        "and take over the whole open batch.",
        "", maxLength=LONGEST_CUT,
    )  # fmt: skip


def run(job: Job, arguments: ReaderOffline) -> ReaderGone:
    """Take one reader offline."""
    check_warehouse_ownership(job.database, job.settings.warehouse)
    return reader_offline(
        job.database,
        arguments.reader_group,
        arguments.reader,
        arguments.position,
        request_id=job.request_id,
    )


def said(arguments: ReaderOffline, _report: ReaderGone) -> str:
    """Say who is gone."""
    return (
        f"reader {arguments.reader} of reader group {arguments.reader_group} is offline; others "
        "take over what it had"
    )


ACTION = Action(__file__, ReaderOffline, run, said, READER_GROUPS, rehearsed=True)
run_if_main(ACTION, __name__)
