"""A question costs the same however long the history is, also where most streams are short."""

import json
from typing import Any

import psycopg2
import pytest
from sqlalchemy import Connection, text

from tests.conftest import TestDatabase
from tests.controller.support import Lane
from tests.reader_groups.support import Group
from tests.sql.history import scaled_again_and_again

EPOCHS = 4000


def cost(connection: Connection, question: str, **given: Any) -> int:
    """How many pages it reads, when it is asked for the tenth time in a session."""
    for _ in range(9):
        connection.execute(text(question), given)
    [[[plan]]] = connection.execute(
        text(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {question}"), given
    )
    return int(plan["Plan"]["Shared Hit Blocks"] + plan["Plan"]["Shared Read Blocks"])


@pytest.fixture
def long_and_short(test_database: TestDatabase) -> tuple[Lane, Lane]:
    """A stream that was scaled thousands of times among many that never were."""
    database = test_database.open()
    lanes = [Lane.made(database) for _ in range(60)]
    Group.made(*lanes)
    scaled_again_and_again(lanes[0], EPOCHS)
    connection = psycopg2.connect(test_database.owner_dsn)
    connection.autocommit = True
    connection.cursor().execute("ANALYZE")
    connection.close()
    return lanes[0], lanes[1]


QUESTIONS = """
SELECT * FROM active_segments(:stream)
SELECT * FROM active_segments(:stream, clock_time(:middle))
SELECT epoch_at(:stream, clock_time(:middle))
SELECT * FROM scale_metadata(:stream, clock_time(:middle), clock_time(:middle))
SELECT * FROM successors(:stream, :segment)
SELECT * FROM predecessors(:stream, :segment)
SELECT * FROM segments_between(:stream, CAST(:cut AS jsonb), CAST(:later AS jsonb))
SELECT * FROM span(:stream, CAST(:cut AS jsonb))
SELECT * FROM size_till(:stream, CAST(:cut AS jsonb))
SELECT * FROM size_between(:stream, CAST(:cut AS jsonb), CAST(:later AS jsonb))
SELECT stream_cut_at(:stream, clock_time(:middle))
SELECT * FROM recorded_cut(:stream, clock_time(:middle))
SELECT next_cut(:stream, CAST(:cut AS jsonb), 10)
SELECT clock_after(:s, CAST(:tail AS jsonb))
SELECT join_cuts(:s, CAST(:cut AS jsonb), CAST(:later AS jsonb))
SELECT * FROM streams WHERE stream = :stream
SELECT * FROM current_epoch_record WHERE stream = :stream
SELECT * FROM epoch_transition WHERE stream = :stream AND epoch = :epoch
SELECT * FROM truncation_record WHERE stream = :stream
"""


def test_a_question_reads_as_much_of_a_long_history_as_of_a_short_one(
    long_and_short: tuple[Lane, Lane],
) -> None:
    costs: dict[str, list[int]] = {}
    for lane, epoch in zip(reversed(long_and_short), (0, EPOCHS // 2), strict=True):
        segment = f"{epoch + 1}.{epoch}" if epoch else "0.0"
        later = f"{epoch + 3}.{epoch + 2}" if epoch else "0.0"
        given = {
            "s": lane.stream_id, "stream": str(lane.name), "epoch": epoch, "segment": segment,
            "cut": json.dumps({segment: 0, "1.0": 0}), "later": json.dumps({later: 0, "1.0": 0}),
            "tail": json.dumps(lane.tail()),
            "middle": lane.value("SELECT created_at FROM epoch WHERE stream_id = :s AND epoch = :e",
                                 e=epoch),
        }  # fmt: skip
        for question in QUESTIONS.strip().splitlines():
            used = {name: value for name, value in given.items() if f":{name}" in question}
            pages = lane.database.transaction(lambda c, q=question, u=used: cost(c, q, **u))
            costs.setdefault(question, []).append(pages)
    assert {q: pages for q, pages in costs.items() if pages[1] > 2 * pages[0] + 30} == {}
