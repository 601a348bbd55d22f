"""Run an audit: ask, in one snapshot, for what is not as it must be, and record the answer."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TypedDict

from sqlalchemy import Connection

from weir.annex.audit.certificates import false_certificates
from weir.annex.audit.sentences import CounterExample, Found
from weir.database.connection import Database
from weir.errors import Incomplete, counted
from weir.queries.annex.audit import (
    batches,
    deliveries,
    erasures,
    losses,
    positions,
    receipts,
    streams,
)
from weir.queries.annex.audit import run as sql

# A batch has the time of its commit already before its transaction ends, which may have put many
# rows into tables by then.
_OVERLAP = timedelta(hours=1)

# Asks a question, or looks at the files that the ledger names, and returns what is wrong.
Look = Callable[[Connection], list[Found]]


class Lost(TypedDict):
    """Events that a subscriber has lost to a rule of retention, the last of them at a time."""

    stream: str
    reader_group: str
    events: int
    rule: str
    at: str


class AuditReport(TypedDict):
    """What an audit looked at and found."""

    proven: bool
    streams: int
    groups: int
    since: str | None
    files: bool
    counter_examples: list[dict[str, str | None]]
    lost: list[Lost]


@dataclass
class Audited:
    """What an audit looked at and found."""

    started_at: datetime
    since: datetime | None
    files: bool
    streams: int
    groups: int
    counter_examples: list[CounterExample] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    clocks: dict[int, int] = field(default_factory=dict)

    def report(self) -> AuditReport:
        """Return it as the report of a job."""
        return {
            "proven": not self.counter_examples, "streams": self.streams, "groups": self.groups,
            "since": self.since.isoformat() if self.since else None, "files": self.files,
            "counter_examples": [asdict(one) for one in self.counter_examples], "lost": self.lost,
        }  # fmt: skip

    def error(self) -> Incomplete | None:
        """Return the error that the ledger is refuted, with the report; None if it is proven."""
        if not (found := self.counter_examples):
            return None
        more = f" (and {len(found) - 1:,} more)" if len(found) > 1 else ""
        return Incomplete(
            "ledger_refuted",
            f"the audit found {counted(len(found), 'counter-example')}: {found[0].what}{more}; "
            "the view weir.counter_examples has them.",
            report=self.report(),
            retryable=False,
        )


def audit(database: Database, *, everything: bool = False, look: Look | None = None) -> Audited:
    """Audit all streams and groups, record what was found, and return it.

    `everything`: all that the ledger has; else commits and batches since the last proven audit, and
    of all streams and groups the ends, the positions, what was delivered, and the receipts. `look`:
    looks at the files, too.
    """
    done = database.snapshot(lambda c: ask(c, everything, look))
    database.transaction(lambda c: _record(c, done))
    return done


def ask(connection: Connection, everything: bool, look: Look | None = None) -> Audited:
    """Return what an audit finds in the snapshot of a connection. See `audit`."""
    moment = sql.moment(connection)
    clocks = {one.stream_id: one.last_clock for one in sql.clocks(connection)}
    since = None if everything else moment.since
    done = Audited(moment.now, since, look is not None, len(clocks), moment.groups, clocks=clocks)
    found = list[Found]()
    all_rows, new_rows = _questions(since and since - _OVERLAP)
    for questions in (all_rows, new_rows):
        sql.plan_for(connection, everything=since is None, all_rows=questions is all_rows)
        for question in questions:
            found += question(connection)
    done.lost = [
        Lost(
            stream=one.stream, reader_group=one.reader_group, events=int(one.events),
            rule=one.rule, at=one.at.isoformat(),
        )
        for one in losses.named(connection)
    ]  # fmt: skip
    found += false_certificates(connection)
    if look is not None:
        found += look(connection)
    done.counter_examples = [*map(CounterExample.of, found)]
    return done


def _questions(since: datetime | None) -> tuple[list[Look], list[Look]]:
    """Return what is asked of all rows, and what of new ones: without `since`, everything."""
    standing: list[Look] = [
        streams.states,
        streams.tiles,
        receipts.ranges,
        receipts.sums,
        receipts.numbers,
        losses.differ,
        erasures.sums,
        erasures.files_of_holes if since else erasures.all_files,
        erasures.made_by_erasures,
        erasures.requests,
        deliveries.stays,
        positions.front,
        positions.states,
        positions.placements,
        positions.stores,
        batches.gone,
    ]
    checkpoints = partial(positions.checkpoints, since=since)
    if since:
        return standing, [
            streams.clocks_in_order,
            streams.new_commits,
            streams.new_files,
            streams.new_appends,
            partial(batches.new_inputs, since=since),
            partial(batches.new_outputs, since=since),
            batches.new_appends,
            checkpoints,
        ]
    return [
        *standing,
        streams.all_commits,
        streams.all_files,
        streams.all_appends,
        streams.garbage,
        batches.all_inputs,
        batches.inputs_as_bounds,
        batches.all_outputs,
        batches.all_appends,
        checkpoints,
    ], [streams.clocks_in_order]


def _record(connection: Connection, done: Audited) -> None:
    """Record an audit, which is known by the moment that it looked at. Of a refuted one no stream
    counts as proven: the next one looks again."""
    sql.one_at_a_time(connection)
    sql.record(
        connection, started=done.started_at, since=done.since, files=done.files,
        proven=not done.counter_examples, streams=done.streams, groups=done.groups,
        lost=sum(one["events"] for one in done.lost),
        found=json.dumps([asdict(one) for one in done.counter_examples]),
    )  # fmt: skip
    if not done.counter_examples:
        sql.proven(connection, ids=list(done.clocks), clocks=list(done.clocks.values()))
