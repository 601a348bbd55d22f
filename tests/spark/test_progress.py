"""What is said while Spark works, before any task of it has ended."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import SparkContext

from tests.crash.jobs import write_config
from tests.spark.installation import Installation
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.settings import Settings
from weir.spark.base import progress, rows_read

# In a process of its own, whose executor says every fifth of a second how far it is. Each time, it
# waits for an answer no longer than that, and too many waits in vain would end the JVM. Where many
# jobs ran with so many heartbeats, their thread stood without a next one (see SPARK-39696), and
# rows were counted no more.
APPENDING = """
import json, sys
from pyspark.sql import functions as F
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.model.names import stream_name
from weir.settings import load
from weir.spark.appends.appender import Appender
from weir.spark.base import progress
from weir.spark.base.session import session

progress.EVERY = 0.05
spark, settings, said = session("progress"), load(), []
app = Installation(settings, Database.of(settings), "test", said.append, lambda: spark)
numbers = spark.range(0, 1_200_000, 1, 1)
frame = numbers.select(F.sha2(F.col("id").cast("string"), 512).alias("k"))
Appender(app).append_frame(stream_name("s/events"), frame, writer_id="test", batch_id="1")
with open(sys.argv[1], "w") as file:
    json.dump(said, file)
"""


@pytest.mark.release
@pytest.mark.jvm
def test_one_long_task_says_how_many_rows_and_bytes_it_is_at(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    stream = stream_name("s/events")
    create_stream(database, stream, routing_key="k", segments=8, request_id="create")
    beats = "spark.executor.heartbeat"
    options = f"--conf {beats}Interval=200ms --conf {beats}.maxFailures=100000"
    subprocess.run(
        [sys.executable, "-c", APPENDING, tmp_path / "said"], check=True, timeout=300,
        env=os.environ | {
            "PYTHONPATH": os.pathsep.join(sys.path), "WEIR_CONFIG": str(write_config(settings)),
            "PYSPARK_SUBMIT_ARGS": f"--master local[2] {options} pyspark-shell",
        },
    )  # fmt: skip
    said = json.loads((tmp_path / "said").read_text())
    form = (
        r"appending to s/events: ([\d,]+) rows read \([\d,]+ a second\), "
        r"([\d,]+) bytes written \([\d.,]+ MB a second\), 0 of 1 tasks done"
    )
    found = [match for line in said if (match := re.fullmatch(form, line))]
    rows, written = ([int(m[i].replace(",", "")) for m in found] for i in (1, 2))
    assert rows == sorted(rows)
    assert 0 < rows[-1] <= 1_200_000
    moments = sorted(set(written))
    assert len(moments) >= 3, said  # the files of its segments, one after the other
    assert len(set(zip(rows, written, strict=True))) >= 4, said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ((1_200_000, 48_000_000, 5, 20, 10.0),
         "1,200,000 rows read (120,000 a second), 48,000,000 bytes written (4.8 MB a second), "
         "5 of 20 tasks done, about 30 s left"),
        ((10, None, 1, 2, 600.0),
         "10 rows read (0 a second), 1 of 2 tasks done, about 10 min left"),
        ((0, 0, 0, 1, 10.0),
         "0 rows read (0 a second), 0 bytes written (0.0 MB a second), 0 of 1 tasks done"),
        ((7, None, 4, 4, 0.0), "7 rows read (7,000 a second), 4 of 4 tasks done"),
    ],
)  # fmt: skip
def test_progress_says_how_much_how_fast_and_how_long_still(
    given: tuple[int, int | None, int, int, float], said: str
) -> None:
    assert progress.in_words(*given) == said


def test_progress_asks_as_little_of_spark_after_many_queries(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway: Any = weir.spark.sparkContext._gateway
    send, sent = gateway._gateway_client.send_command, list[str]()
    bus: Any = weir.spark.sparkContext._jsc.sc().listenerBus()

    def counted(command: str, *more: Any, **named: Any) -> Any:
        sent.append(command)
        return send(command, *more, **named)

    monkeypatch.setattr(gateway._gateway_client, "send_command", counted)

    def asked() -> int:
        for _ in range(25):
            weir.spark.range(1).collect()
        bus.waitUntilEmpty()  # Spark's own account of queries comes after them
        sent.clear()
        progress._so_far(weir.spark, None, 1.0)
        return len([command for command in sent if not command.startswith("m\nd\n")])

    assert asked() >= asked()  # the first looks up a class


def test_a_server_goes_on_where_its_spark_does_not_say_what_runs() -> None:
    rows_read.tell(cast(SparkContext, object()))


def test_nothing_is_said_of_work_that_has_ended(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting, ended = threading.Event(), threading.Event()

    def slowly(*_: object) -> str:
        counting.set()
        ended.wait(10)
        return "5 rows read"

    monkeypatch.setattr(progress, "EVERY", 0.01)
    monkeypatch.setattr(progress, "_so_far", slowly)
    said: list[str] = []
    with progress.watched(weir.spark, "writing", said.append):
        assert counting.wait(10)
    ended.set()
    for thread in threading.enumerate():
        if thread.name == "weir-progress":
            thread.join(10)
    assert said == []
