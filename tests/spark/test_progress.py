"""What is said while Spark works, before any task of it has ended."""

import re
import threading
from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.spark.installation import Installation
from weir.spark.base import progress


def test_one_long_task_says_how_many_rows_and_bytes_it_is_at(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", 0.05)
    stream = weir.create(segments=8)
    numbers = weir.spark.range(0, 1_200_000, 1, 1)
    weir.append(stream, numbers.select(F.sha2(F.col("id").cast("string"), 512).alias("k")))
    form = (
        r"appending to s/events: ([\d,]+) rows read \([\d,]+ a second\), "
        r"([\d,]+) bytes written \([\d.,]+ MB a second\), 0 of 1 tasks done"
    )
    found = [match for line in weir.said if (match := re.fullmatch(form, line))]
    rows, written = ([int(m[i].replace(",", "")) for m in found] for i in (1, 2))
    assert rows == sorted(rows)
    assert 0 < rows[-1] <= 1_200_000
    moments = sorted(set(written))
    assert len(moments) >= 3, weir.said  # the files of its segments, one after the other
    assert len(set(zip(rows, written, strict=True))) >= 4, weir.said


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

    def counted(command: str, *more: Any, **named: Any) -> Any:
        sent.append(command)
        return send(command, *more, **named)

    monkeypatch.setattr(gateway._gateway_client, "send_command", counted)

    def asked() -> int:
        for _ in range(25):
            weir.spark.range(1).collect()
        sent.clear()
        progress._so_far(weir.spark, None, 1.0)
        return len([command for command in sent if not command.startswith("m\nd\n")])

    assert asked() == asked()


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
