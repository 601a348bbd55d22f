"""A streaming query from a group to a stream, killed at any moment: each event is there once."""

import sys
import time
from pathlib import Path

import pytest

from tests.chance import random_for
from tests.crash.jobs import Process, wait_for, write_config
from tests.spark.installation import Installation

PROGRAM = str(Path(__file__).with_name("query_program.py"))
EVENTS, ROUNDS = 1000, 6


@pytest.mark.release
@pytest.mark.timeout(900)
def test_a_query_that_is_killed_again_and_again_copies_each_event_once(
    weir: Installation, tmp_path: Path
) -> None:
    chance = random_for("a query that is killed")
    source, copy = weir.create(segments=2), weir.create("s/copy", segments=2)
    rows = [(f"key {n % 7}", n) for n in range(EVENTS)]
    for first in range(0, EVENTS, 50):
        part = weir.spark.createDataFrame(rows[first : first + 50], "k string, n long")
        weir.append(source, part.coalesce(1))
    group = weir.group(source)
    command = [sys.executable, PROGRAM, group, str(copy), str(tmp_path / "checkpoint")]
    config = write_config(weir.settings)
    committed = "SELECT count(*) FROM transaction WHERE state = 'committed' AND writer_id = 'copy'"
    kills = 0
    for _ in range(ROUNDS):
        query = Process(command, config)
        enough = int(weir.value(committed)) + chance.randint(1, 4)

        def there(query: Process = query, enough: int = enough) -> bool:
            return not query.running() or weir.value(committed) >= enough

        wait_for("micro-batches", there, seconds=240)
        time.sleep(chance.random())
        kills += query.running()
        query.kill()
    assert kills >= ROUNDS // 2, "it was at work when it was killed"
    last = Process(command, config)
    assert last.wait(300) == 0, last.said
    facts = weir.check(copy)
    assert sorted(facts["n"]) == list(range(EVENTS))
    assert weir.value("SELECT unread_events FROM weir.lag WHERE reader_group = 'readers'") == 0
    batches, readers = weir.query(
        "SELECT count(*), count(DISTINCT reader_id) FROM reader_batch WHERE state = 'committed'"
    )[0]
    assert readers == 1
    assert batches == weir.value(committed), "a micro-batch is a batch, and an append"
