"""What one more small batch of a reader asks of Spark and of Postgres."""

from typing import Any

import pytest
from sqlalchemy import event

from tests.conftest import TestDatabase
from tests.crash.jobs import execute, write_config
from tests.spark.installation import Installation
from tests.spark.test_wide_rows import counted
from tests.watching import count_statements
from weir.spark import Reader

BATCHES = 3
QUESTIONS = 600  # to the JVM


def test_a_small_batch_is_one_job_few_statements_and_few_questions(
    weir: Installation, test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(weir.settings)))
    stream = weir.create(segments=2)
    weir.create("s/out", segments=2)
    for n in range(BATCHES):
        weir.append(stream, [(f"key {i % 7}", i) for i in range(n * 10, n * 10 + 10)])
    execute(
        test_database.owner_dsn,
        """CREATE TABLE public.results (k text, n bigint PRIMARY KEY);
        GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher""",
    )
    scheduler: Any = weir.spark.sparkContext._jsc.sc().dagScheduler()
    for output, wanted in (("stream:s/out", (1, 16, 4)), ("table:public.results", (1, 13, 3))):
        costs: list[tuple[int, int, int]] = []
        asked: list[int] = []
        group = weir.group(stream, name=output.partition(":")[0])
        with Reader(weir.spark, group, batch_events=10) as reader:
            database = reader.installation.database
            sent = count_statements(database)
            committed: list[None] = []
            event.listen(database.engine, "commit", lambda _, to=committed: to.append(None))
            for batch in reader:
                jobs = scheduler.numTotalJobs()
                with counted(weir) as made:
                    batch.commit({output: batch.events})
                costs.append((scheduler.numTotalJobs() - jobs, len(sent), len(committed)))
                asked.append(len(made))
                sent.clear()
                committed.clear()
        # The first looks at more, and during one that takes long the lease is renewed.
        assert min(costs[1:]) == wanted, output
        assert min(asked[1:]) < QUESTIONS
    assert weir.query("SELECT count(*), sum(n) FROM public.results") == [(30, 435)]
