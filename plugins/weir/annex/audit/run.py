"""Run an audit: ask, in one snapshot, for what is not as it must be, and record the answer."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, text

from weir.annex.audit import deliveries, losses, positions, receipts
from weir.annex.audit.batches import GONE, of_batches
from weir.annex.audit.certificates import false_certificates
from weir.annex.audit.erasures import of_erasures
from weir.annex.audit.ledger import ORDER, STATES, TILES, of_streams
from weir.annex.audit.sentences import CounterExample
from weir.database.connection import Database
from weir.errors import Incomplete, counted

# Postgres knows of no stream how much there is of it, so it is told how to join: all rows by
# hashes, in memory; and a table of which only new rows are asked, by its indexes. Several processes
# are worth it only for all rows.
_SETTINGS = """SELECT set_config('work_mem', '128MB', true), set_config('jit', 'off', true),
    set_config('max_parallel_workers_per_gather', CASE WHEN :all THEN '4' ELSE '0' END, true),
    set_config('min_parallel_table_scan_size', '1MB', true),
    set_config('enable_mergejoin', 'off', true), set_config('enable_nestloop', '{0}', true),
    set_config('enable_seqscan', '{1}', true)"""
_OF_ALL_ROWS, _OF_NEW_ROWS = _SETTINGS.format("off", "on"), _SETTINGS.format("on", "off")

# A batch has the time of its commit already before its transaction ends, which may have put many
# rows into tables by then.
_OVERLAP = timedelta(hours=1)

# Looks at the files that the ledger names, given as rows, and returns what is wrong.
Look = Callable[[Connection], list[CounterExample]]


@dataclass
class Audited:
    """What an audit looked at and found."""

    started_at: datetime
    since: datetime | None
    files: bool
    streams: int
    groups: int
    counter_examples: list[CounterExample] = field(default_factory=list)
    lost: list[dict[str, Any]] = field(default_factory=list)
    clocks: dict[int, int] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """Return it as the report of a job."""
        return {
            "proven": not self.counter_examples, "streams": self.streams, "groups": self.groups,
            "since": self.since and self.since.isoformat(), "files": self.files,
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
    row = connection.execute(
        text(
            """SELECT transaction_timestamp() AS now, (
                SELECT a.started_at FROM audit a WHERE a.number = (
                    SELECT max(number) FROM audit WHERE proven)) AS since,
                (SELECT count(*) FROM reader_group) AS groups"""
        )
    ).one()
    since = None if everything else row.since
    clocks = {
        one.stream_id: one.last_clock
        for one in connection.execute(
            text("SELECT stream_id, last_clock FROM stream WHERE state <> 'deleted'")
        )
    }
    done = Audited(row.now, since, look is not None, len(clocks), row.groups, clocks=clocks)
    everything = since is None
    moving = [
        *of_streams(everything),
        *of_batches(everything),
        positions.of_checkpoints(everything),
    ]
    standing = [
        STATES,
        TILES,
        *receipts.STATEMENTS,
        *losses.STATEMENTS,
        *of_erasures(everything),
        *deliveries.STATEMENTS,
        *positions.STATEMENTS,
        GONE,
    ]
    for how, statements in (
        (_OF_ALL_ROWS, [*standing, *(moving if everything else [])]),
        (_OF_NEW_ROWS, [ORDER, *([] if everything else moving)]),
    ):
        connection.execute(text(how), {"all": everything})
        for one in statements:
            given = {"since": since and since - _OVERLAP} if ":since" in one else {}
            done.counter_examples += map(CounterExample.of, connection.execute(text(one), given))
    done.lost = [
        {**one._mapping, "events": int(one.events), "at": one.at.isoformat()}
        for one in connection.execute(text(losses.LOST))
    ]
    done.counter_examples += false_certificates(connection)
    if look is not None:
        done.counter_examples += look(connection)
    return done


def _record(connection: Connection, done: Audited) -> None:
    """Record an audit, which is known by the moment that it looked at. Of a refuted one no stream
    counts as proven: the next one looks again."""
    connection.execute(text("SELECT FROM installation FOR NO KEY UPDATE"))  # one at a time
    connection.execute(
        text(
            """WITH made AS (
                INSERT INTO audit (started_at, since, files, proven, streams, reader_groups,
                                   lost_events)
                SELECT :started, :since, :files, :proven, :streams, :groups, :lost
                WHERE NOT EXISTS (SELECT FROM audit WHERE started_at = :started)
            ), before AS (
                DELETE FROM counter_example
            )
            INSERT INTO counter_example (kind, stream_id, group_id, what)
            SELECT c.kind, s.stream_id, g.group_id, c.what
            FROM jsonb_to_recordset(CAST(:found AS jsonb))
                AS c (kind text, stream text, reader_group text, what text)
            LEFT JOIN stream s ON s.stream_name = c.stream AND s.state <> 'deleted'
            LEFT JOIN reader_group g ON g.name = c.reader_group"""
        ),
        {
            "started": done.started_at, "since": done.since, "files": done.files,
            "proven": not done.counter_examples, "streams": done.streams, "groups": done.groups,
            "lost": sum(one["events"] for one in done.lost),
            "found": json.dumps([asdict(one) for one in done.counter_examples]),
        },
    )  # fmt: skip
    if not done.counter_examples:
        connection.execute(
            text(
                """INSERT INTO audited_stream AS a (stream_id, clock)
                SELECT n.stream_id, n.clock
                FROM unnest(CAST(:ids AS bigint[]), CAST(:clocks AS bigint[])) AS n (stream_id,
                    clock)
                LEFT JOIN audited_stream b USING (stream_id)
                WHERE b.clock IS NULL OR b.clock < n.clock
                ON CONFLICT (stream_id) DO UPDATE SET clock = greatest(a.clock, excluded.clock)"""
            ),
            {"ids": list(done.clocks), "clocks": list(done.clocks.values())},
        )
