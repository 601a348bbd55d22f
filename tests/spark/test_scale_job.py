"""The job of scaling by load over real appends: equal loads, order, hot keys, exactly once."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest
from sqlalchemy import text

from tests.spark.installation import Installation
from tests.world.jobs import run_job
from weir.model.names import StreamName, stream_name

pytestmark = pytest.mark.usefixtures("configured")


def job(weir: Installation, name: str = "scale", **arguments: Any) -> dict[str, Any]:
    """Run a job that must succeed; its report."""
    assert run_job(name, ["--arguments", json.dumps(arguments)]) == 0
    found = "SELECT report FROM job_runs WHERE job = :job ORDER BY started_at DESC LIMIT 1"
    return dict(weir.value(found, job=name))


def as_if_by_the_quarter(weir: Installation, stream: StreamName) -> None:
    """Let the commits be 15 minutes apart, the last one now, and the epochs before them."""

    def work(connection: Any) -> None:
        given = {"s": str(stream)}
        for statement in (
            """UPDATE time_index i SET clock = time_clock(now()) - CAST(900000000 AS bigint)
                   * (s.next_transaction_number - 1 - i.transaction_number)
               FROM stream s WHERE s.stream_id = i.stream_id AND s.stream_name = :s""",
            """UPDATE transaction t SET clock = i.clock FROM time_index i
               WHERE i.stream_id = t.stream_id AND t.stream_name = :s
                 AND i.transaction_number = t.transaction_number""",
            """UPDATE epoch SET created_at = created_at - CAST(86400000000 AS bigint)
               WHERE stream_name = :s""",
            "UPDATE stream SET last_clock = time_clock(now()) WHERE stream_name = :s",
        ):
            connection.execute(text(statement), given)

    weir.database.transaction(work)


def test_a_hot_stream_gets_segments_of_equal_load_and_keeps_each_key_in_order(
    weir: Installation,
) -> None:
    settings = {"scaling": "event_rate", "target_rate": 1, "scale_factor": 4, "segments": 1}
    job(weir, "create_stream", stream="s/events", routing_key="k", max_segments="9",
        scale_cooldown="20 min", **settings)  # fmt: skip
    [row] = weir.query("SELECT scaling, max_segments, scale_cooldown FROM stream")
    assert tuple(row) == ("event_rate", 9, 1200)
    stream = stream_name("s/events")
    random = Random(7)
    names = [f"key {i}" for i in range(300)]
    weights = [1 / (i + 5) for i in range(300)]
    events = [(k, n) for n, k in enumerate(random.choices(names, weights, k=18_000))]
    for part in range(5):
        weir.append(stream, events[part * 3_600 : (part + 1) * 3_600])
    as_if_by_the_quarter(weir, stream)
    late = weir.appender  # of the epoch before the split
    dry = job(weir, dry_run=True, streams=[str(stream)])["decisions"]
    assert [one["action"] for one in dry] == ["split"]
    [done] = job(weir)["decisions"]
    assert done["changes"] == dry[0]["changes"]
    assert len(done["created"]) == 4
    assert job(weir)["decisions"][0]["rule"] == "too_young"
    late.append_frame(
        stream, weir.spark.createDataFrame(events[:3_600], "k string, n long"),
        writer_id="test", batch_id="after the split",
    )  # fmt: skip
    facts = weir.check(stream)
    assert len(facts) == 21_600
    found = Counter(facts["_segment"])
    after = [count for segment, count in found.items() if segment >> 32 == 1]
    assert len(after) == 4
    assert max(after) < 1.25 * 3_600 / 4
    [decision] = weir.query("SELECT action, changes FROM scale_decisions WHERE action <> 'none'")
    assert decision.changes[0]["points"] == done["changes"][0]["points"]
