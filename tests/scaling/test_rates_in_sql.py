"""The rates that SQL gives are those of weir.model.segment_rates, whatever was committed when."""

from bisect import bisect_left
from random import Random
from typing import Any

import pytest

from tests.chance import cases, random_for
from tests.world.scaling import made
from tests.world.streams import rows, run
from weir.database.connection import Database
from weir.model.segment_rates import (
    MINUTE,
    Commit,
    interval_between,
    measured_until,
    rates_of,
)

NOW = 1_800_000_000_000_000


def clocks_of(random: Random) -> list[int]:
    """Commits of one stream: regular, irregular or in bursts, over minutes or over weeks."""
    interval = random.choice([1_000_000, MINUTE, 60 * MINUTE, 24 * 60 * MINUTE])
    clock = NOW - random.choice([0, interval, 10 * interval])
    found = {clock}
    for _ in range(random.choice([0, 1, 2, 5, 40])):
        usual = [interval, random.randrange(1, 2 * interval), interval // 100 + 1]
        clock -= random.choice([*usual, 50 * interval])  # a pause
        found.add(clock)
    return sorted(found)


def play(database: Database, random: Random) -> None:
    by_bytes = random.random() < 0.3
    lane = made(database, segments=3, scaling="byte_rate" if by_bytes else "event_rate")
    clocks = clocks_of(random)
    created = clocks[0] - random.randrange(1, 30 * MINUTE)
    run(database, "UPDATE epoch SET created_at = :c WHERE stream_id = :s",
        c=created, s=lane.stream_id)  # fmt: skip
    # Copies of all segments, as rolls make them, between two commits.
    rolls = sorted({random.choice(clocks) + 1 for _ in range(random.choice([0, 0, 1, 3]))})
    for epoch, at in enumerate(rolls, 1):
        run(
            database,
            """WITH e AS (
                INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at,
                                   cause, request_id)
                SELECT stream_id, stream_name, :e, 0, :at, 'roll', '' FROM stream
                WHERE stream_id = :s
            ), t AS (DELETE FROM segment_tail WHERE stream_id = :s), o AS (
                UPDATE segment SET sealed_epoch = :e, sealed_clock = :at, events = 0, bytes = 0
                WHERE stream_id = :s AND sealed_epoch IS NULL RETURNING *
            ), n AS (
                INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
                SELECT stream_id, stream_name,
                       (CAST(:e AS bigint) << 32) + (segment_id & 4294967295), key_low, key_high
                FROM o RETURNING stream_id, segment_id
            )
            SELECT count(*) FROM n""",
            e=epoch, at=at, s=lane.stream_id,
        )  # fmt: skip
        run(database, """INSERT INTO segment_tail (stream_id, segment_id)
            SELECT stream_id, segment_id FROM segment
            WHERE stream_id = :s AND sealed_epoch IS NULL""", s=lane.stream_id)  # fmt: skip
    commits: dict[int, list[Commit]] = {0: [], 1: [], 2: []}
    for i, clock in enumerate(clocks):
        for number, before in commits.items():
            if random.random() < (0.9, 0.2, 0.5)[number] or i == len(clocks) - 1:
                amount = random.randrange(1, 10_000)
                epoch = bisect_left(rolls, clock)
                run(
                    database,
                    """INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset,
                        events, start_byte, bytes, clock, transaction_number)
                    VALUES (:s, :name, :g, :i, :events, 0, :bytes, :clock, 1)""",
                    s=lane.stream_id, name=str(lane.name), g=(epoch << 32) + number, i=i * 10_000,
                    clock=clock, events=1 if by_bytes else amount, bytes=amount if by_bytes else 1,
                )  # fmt: skip
                before.append(Commit(clock, before[-1].clock if before else created, amount))
    found: list[Any] = rows(
        database, "SELECT * FROM segment_loads(:s, :now) ORDER BY segment_id & 4294967295",
        s=lane.stream_id, now=NOW,
    )  # fmt: skip
    assert [one.segment_id >> 32 for one in found] == [len(rolls)] * 3
    clocks = sorted({commit.clock for one in commits.values() for commit in one})
    interval = interval_between(clocks)
    for number, one in enumerate(found):
        assert one.commit_interval == interval
        if interval is None:
            assert (one.rates, one.windows) == (None, None)
            continue
        until = measured_until(NOW, clocks[-1], interval)
        rates = rates_of(commits[number], until, interval)
        assert one.measured_until == until
        assert tuple(one.windows) == rates.windows
        assert one.rates == pytest.approx(rates.over, abs=1e-9)
        longest = max(rates.windows[-1], 600_000_000)
        # An older original than anything depends on need not be found.
        assert min(until - one.created_at, longest) == min(until - created, longest)


def test_rates_are_those_of_the_model_through_any_rolls(shared_database: Database) -> None:
    for number in range(cases(200)):
        play(shared_database, random_for("rates", number))
