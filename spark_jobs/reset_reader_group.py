"""Move a reader group to a starting point.

**Parameters.** The starting point: a checkpoint, a time, a cut, the head, the tail, or the group's
own start. With *Dry run*, which is on at first, the run only says what the group would read
again or leave out. Going back over committed events repeats outputs, so you must allow it, and the
task waits until a person approves what would be repeated or lost (*Required Actions*). Open batches
are abandoned.

**On failure.** One transaction. A starting point whose events were truncated is refused, with the
number of missing events.
"""

import json
from dataclasses import dataclass

from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import counted
from weir.operations.action import READER_GROUPS, Action, Job
from weir.operations.approval import Loss, things
from weir.operations.form import (
    STARTING_POINT,
    STARTING_POINTS,
    argument,
    dry_run_argument,
    loss_argument,
    reader_group_argument,
    truncated_argument,
)
from weir.operations.group_settings import WRITTEN
from weir.operations.runner import run_if_main
from weir.reader_groups.groups.reset import GroupReset, reset_reader_group


@dataclass(frozen=True)
class ResetReaderGroup:
    """Move a reader group to a starting point."""

    reader_group: str = reader_group_argument()
    to: str = argument(
        "To",
        f"Where it continues: start (where it began), checkpoint NAME, {STARTING_POINT}.",
        **WRITTEN,
        examples=["start", "checkpoint NAME", *STARTING_POINTS],
    )
    allow_repeat: bool = argument(
        "Repeat", "Go back even if the group reads committed events again.", False
    )
    dry_run: bool = dry_run_argument(
        "Only say what the group would read again or leave out, and what that releases."
    )
    allow_loss: bool = loss_argument()
    allow_truncated: bool = truncated_argument("Retention")


def measure(job: Job, arguments: ResetReaderGroup) -> Loss | None:
    """Return which committed events the group would read again, for which outputs, and what is
    released; None if it goes forward and nobody loses anything."""
    return None if arguments.dry_run else _loss(job.database, arguments)


def _loss(database: Database, arguments: ResetReaderGroup) -> Loss | None:
    found = _reset(database, arguments, "", dry_run=True)
    found.pop("reads")  # for a dry run: it changes with what is appended
    if not (found["again"] or found["loses"]):
        return None
    of = things(database, streams=found["position"], groups=[arguments.reader_group])
    return _told(arguments, found, of)


def _told(arguments: ResetReaderGroup, found: GroupReset, of: dict[str, object]) -> Loss:
    name = arguments.reader_group
    lines = [
        f"reader group {name} would read {counted(count, 'event')} of {stream} again"
        for stream, count in sorted(found["again"].items())
    ]
    lines += [f"their results would be in {output} twice" for output in found["outputs"]]
    return Loss([*lines, *found["deletes"]], {**found, **of}, {"to": json.dumps(found["position"])})


def _reset(
    database: Database, arguments: ResetReaderGroup, request_id: str, *, dry_run: bool = False
) -> GroupReset:
    return reset_reader_group(
        database,
        arguments.reader_group,
        arguments.to,
        allow_repeat=arguments.allow_repeat,
        allow_loss=arguments.allow_loss,
        allow_truncated=arguments.allow_truncated,
        dry_run=dry_run,
        request_id=request_id,
    )


def run(job: Job, arguments: ResetReaderGroup) -> GroupReset:
    """Reset one group."""
    if arguments.dry_run:
        found = _reset(job.database, arguments, "", dry_run=True)
        job.say_all(found["missing"])
        job.say_all(found.pop("reads"))
        job.say_all(_told(arguments, found, {}).tried)
        return {**found, "dry_run": True}
    check_warehouse_ownership(job.database, job.settings.warehouse)
    done = job.as_approved(
        lambda database: _loss(database, arguments),
        lambda database: _reset(database, arguments, job.request_id),
    )
    job.say_all([*done["missing"], *done["reads"], *done["deletes"]])
    return done


def said(arguments: ResetReaderGroup, _report: GroupReset) -> str:
    """Say where the group is."""
    if arguments.dry_run:
        return f"reader group {arguments.reader_group} is not reset: this was a dry run"
    return f"reader group {arguments.reader_group} reads on from {arguments.to}"


ACTION = Action(
    __file__, ResetReaderGroup, run, said, READER_GROUPS, rehearsed=True, measure=measure
)
run_if_main(ACTION, __name__)
