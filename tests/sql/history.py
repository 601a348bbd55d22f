"""Streams with scales, rolls and truncations behind them, and the model that knows the answers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from random import Random
from typing import Any

from tests.chance import random_for
from tests.controller.driver import Driver
from tests.controller.model import GRID, Cut, Model
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.controller import queries
from weir.database.connection import Database
from weir.model.segment import Segment, segment_name
from weir.model.stream_cut import StreamCut, check_valid

TICK = timedelta(microseconds=1)


def live(database: Database, case: int) -> Driver:
    """Return a stream to which, for a while, all kinds of things have happened."""
    driver, random = Driver(database, segments=2), random_for(case)
    for _ in range(20):
        if random.random() < 0.4:
            driver.open.append(driver.begin())
        if random.random() < 0.5:
            driver.scale(random)
        if driver.open and random.random() < 0.4:
            driver.commit_some(random, 1)
        if random.random() < 0.1:
            driver.truncate(random)
        driver.append(random)
    return driver


def scaled_again_and_again(lane: Lane, last: int) -> None:
    """Make a long history in one go, in which epoch after epoch replaces the lower of two segments,
    0.0."""
    run(
        lane.database,
        """WITH moved AS (
            UPDATE stream SET current_epoch = :last, last_clock = last_clock + :last
            WHERE stream_id = :s RETURNING last_clock
        ), epochs AS (
            INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause,
                               request_id)
            SELECT :s, :name, e, e, last_clock - :last + e, 'scale', ''
            FROM moved, generate_series(1, :last) e
        ), first AS (
            UPDATE segment SET sealed_epoch = 1, sealed_clock = last_clock - :last + 1, events = 0,
                bytes = 0
            FROM moved WHERE stream_id = :s AND segment_id = 0
        ), tail AS (
            UPDATE segment_tail SET segment_id = CAST(:last AS bigint) << 32 | :last + 1
            WHERE stream_id = :s AND segment_id = 0
        )
        INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high, sealed_epoch,
                             sealed_clock, events, bytes)
        SELECT :s, :name, CAST(e AS bigint) << 32 | e + 1, 0, 0.5, nullif(e, :last) + 1,
            last_clock - :last + nullif(e, :last) + 1, 0 * nullif(e, :last), 0 * nullif(e, :last)
        FROM moved, generate_series(1, :last) e""",
        s=lane.stream_id,
        name=str(lane.name),
        last=last,
    )


def lived_through(lane: Lane, group: Group, last: int) -> None:
    """Make what comes with the epochs of `scaled_again_and_again`: per epoch an append of a file to
    its new segment, a cut, a decision (eight days ago), a scale, a request, a run, an output of a
    group, and its batch (two hours ago)."""
    run(
        lane.database,
        """WITH e AS MATERIALIZED (
            SELECT e.epoch AS n, e.created_at AS clock, clock_time(e.created_at) AS at,
                   CAST(e.epoch AS bigint) << 32 | e.epoch + 1 AS segment_id
            FROM epoch e WHERE e.stream_id = :s AND e.epoch BETWEEN 1 AND :last
        ), appends AS (
            INSERT INTO transaction (stream_id, stream_name, transaction_number, writer_id,
                batch_id, fingerprint, state, epoch, opened_at, lease_until, ended_at, clock,
                allow_repeated_files, source)
            SELECT :s, :name, n, 'writer', n, '', 'committed', n, at, at, at, clock, false, ''
            FROM e
        ), inputs AS (
            INSERT INTO transaction_input (stream_id, path, transaction_number, bytes)
            SELECT :s, n || '.csv', n, 1 FROM e
        ), entries AS (
            INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events,
                                    start_byte, bytes, clock, transaction_number)
            SELECT :s, :name, segment_id, 0, 1, 0, 10, clock, n FROM e
        ), files AS (
            INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
                                   transaction_number, first_seq, last_seq, schema_version, path)
            SELECT :s, :name, segment_id, 0, 1, 10, n, 0, 0, 1, n FROM e
        ), sizes AS (
            UPDATE segment g SET events = 1, bytes = 10 FROM e
            WHERE g.stream_id = :s AND g.segment_id = e.segment_id AND g.sealed_epoch IS NOT NULL
        ), cuts AS (
            INSERT INTO stream_cut (stream_id, stream_name, recorded_at, clock, cut, events, bytes)
            SELECT :s, :name, at, clock, '{"1.0": 0}', n, n * 10 FROM e
        ), decisions AS (
            INSERT INTO retention_decision (stream_id, stream_name, decided_at, rule, reason,
                                            head, held_by, events, bytes)
            SELECT :s, :name, at - interval '8 days', 'consumed', '', '{}', '{}', 0, 0 FROM e
        ), receipts AS (
            INSERT INTO truncation (stream_id, stream_name, number, truncated_at, clock, rule,
                                    reason, head, events, bytes, files, events_until, lost,
                                    subscribers)
            SELECT :s, :name, n, at - interval '8 days', clock, 'consumed', '', '{}', 1, 10, 1, n,
                   '{}', jsonb_build_object(CAST(:group AS text), jsonb_build_object(
                       'group_id', CAST(:g AS bigint), 'lost', 0, 'lost_so_far', 0)) FROM e
        ), ranges AS (
            INSERT INTO truncated_range (stream_id, segment_id, from_offset, to_offset, number)
            SELECT :s, segment_id, 0, 1, n FROM e
        ), scales AS (
            INSERT INTO scale_decision (stream_id, stream_name, decided_at, epoch, action, rule,
                                        reason, policy, loads, changes)
            SELECT :s, :name, at, n, 'split', 'hot', '', '', '{}', '[]' FROM e
        ), folders AS (
            INSERT INTO parquet_output (group_id, group_name, output, number, batch_id, root,
                                        path, committed_at)
            SELECT :g, :group, 'o', n - 1, n, '/r', 'p', at FROM e
        ), requests AS (
            INSERT INTO request (request_id, operation, object, arguments, result, ended_at)
            SELECT 'r' || n, 'scale', :name, '', '{}', at FROM e
        ), runs AS (
            INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments,
                                 state, started_at)
            SELECT 'dag', :name || n, 'task', -1, 1, 'job', '{}', 'succeeded', at FROM e
        )
        INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state, bounds,
                                  events, bytes, opened_at, committed_at, ended_at, outputs)
        SELECT :g, :group, n, 'reader', 1, 'committed', '[]', 1, 10, b.at, b.at, b.at,
               '[{"kind": "parquet", "output": "o", "path": "p"}]'
        FROM e CROSS JOIN LATERAL (SELECT e.at - interval '2 hours' AS at) b""",
        s=lane.stream_id, g=group.group_id, group=group.name, name=str(lane.name), last=last,
    )  # fmt: skip


@dataclass
class History:
    """What happened, its model, and the questions."""

    driver: Driver
    random: Random

    @property
    def model(self) -> Model:
        return self.driver.model

    @property
    def lane(self) -> Lane:
        return self.driver.lane

    def ask(self, question: Callable[..., Any], *given: Any) -> Any:
        return self.lane.database.transaction(lambda c: question(c, self.lane.name, *given))

    def view(self, name: str, columns: str, order: str) -> list[tuple[Any, ...]]:
        """Return columns of a view for this stream."""
        found = self.lane.rows(
            f"SELECT {columns} FROM {name} WHERE stream = :name ORDER BY {order}",
            name=str(self.lane.name),
        )
        return [tuple(row) for row in found]

    def frontiers(self, count: int) -> list[Cut]:
        """Return random cuts, some of them behind the head."""
        start: Cut = dict.fromkeys(self.model.epochs[0], 0)
        return [self.model.frontier(self.random, start) for _ in range(count)]

    def pairs(self, count: int) -> list[tuple[Cut, Cut]]:
        """Return pairs of cuts, in which one is after the other as often as not."""
        found: list[tuple[Cut, Cut]] = []
        for cut in self.frontiers(count):
            found.append((cut, self.model.frontier(self.random, cut)))
            [other] = self.frontiers(1)
            found.append((cut, other))
        return found

    def segments(self) -> dict[int, Segment]:
        return {s: Segment(s, x.low / GRID, x.high / GRID) for s, x in self.model.segments.items()}

    def value(self, cut: Cut | queries.Cut) -> StreamCut:
        """Return a cut as the library has it."""
        shown = {s if isinstance(s, str) else segment_name(s): o for s, o in cut.items()}
        return StreamCut.from_json(
            {s: "future" if o is None else o for s, o in shown.items()}, self.segments()
        )

    def check_valid(self, cut: queries.Cut) -> None:
        """Check that a cut is a position of this stream, in its one canonical form."""
        ends = {s: len(x.events) for s, x in self.model.segments.items()}
        check_valid(self.value(cut), self.segments().values(), ends)
        assert self.value(cut).to_json() == cut

    def epoch_times(self) -> list[datetime]:
        found = self.lane.rows(
            "SELECT clock_time(created_at) AS at FROM epoch WHERE stream_id = :s ORDER BY epoch"
        )
        return [row.at for row in found]

    def commit_times(self) -> dict[int, datetime]:
        """Return when each event was committed, by its place in the order of all of them."""
        times = {
            row.transaction_number: row.at
            for row in self.lane.rows(
                """SELECT transaction_number, clock_time(clock) AS at FROM transaction
                WHERE stream_id = :s AND state = 'committed'"""
            )
        }
        files = {
            file.path: times[staged.attempt.transaction_number]
            for staged in self.driver.committed
            for file in staged.files
        }
        return {e.order: files[file.path] for file in self.model.files for e in file.events}

    def moments(self) -> list[datetime]:
        """Return times of epochs and of commits, just before, just after, and long before and
        after."""
        known = [*self.epoch_times(), *self.commit_times().values()]
        chosen = self.random.sample(known, min(len(known), 8))
        year = timedelta(days=365)
        near = [t + step for t in chosen for step in (-TICK, timedelta(), TICK)]
        return sorted([min(known) - year, *near, max(known) + year])
