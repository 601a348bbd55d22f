"""Under on_error=quarantine only what the events themselves hold sets them aside; whatever else
goes wrong, in Postgres or on the executors, stops the run with the batch open."""

import errno
import socket
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tests.released import only
from tests.spark.installation import Installation
from weir.errors import BatchFailed
from weir.model.names import StreamName
from weir.operations.runner import failure_of
from weir.spark.failures.causes import caused_by_events, sentence
from weir.spark.failures.unreadable import first_cause

ROWS = 8


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Events in one segment."""
    stream = weir.create(segments=1)
    weir.put(stream, [(f"key {n % 3}", n) for n in range(ROWS)])
    return stream


def same(events: DataFrame) -> DataFrame:
    return events.select("k", "n")


def assert_nothing_happened(weir: Installation) -> None:
    rows = weir.query("SELECT state, events FROM reader_batch")
    assert [tuple(row) for row in rows] == [("open", ROWS)]
    assert weir.query("SELECT FROM stream WHERE name LIKE '%.rejected'") == []


class Throttled(ConnectionError):
    """A library's own kind of being away."""


class NotForUs(ValueError):
    """What a function raises about an event."""


def refused_by_a_service(n: int) -> int:
    with urllib.request.urlopen("http://127.0.0.1:1/", timeout=5) as answer:
        return int(answer.status)


def no_such_host(n: int) -> int:
    return len(socket.getaddrinfo("nowhere.invalid", 80))


def throttled(n: int) -> int:
    raise Throttled("slow down")


def carried(n: int) -> int:
    try:
        raise ConnectionResetError("gone")
    except OSError as error:
        raise RuntimeError("could not ask\n  in vain\nValueError: not this") from error


def database_away(n: int) -> int:
    return int(psycopg2.connect("host=127.0.0.1 port=1").server_version)


def not_installed(n: int) -> int:
    import nothing_of_this_name  # type: ignore[import-not-found]

    return int(nothing_of_this_name.answer)


def misspelled(n: int) -> int:
    return nn  # type: ignore[name-defined, no-any-return]  # noqa: F821 - the mistake


def miscalled(n: int) -> int:
    return misspelled()  # type: ignore[call-arg]


def of_nobody_knows_what_kind(n: int) -> int:
    class LocalError(Exception):
        """That of a function, which nobody can import."""

    raise LocalError("known only there")


ELSEWHERE: list[tuple[Callable[[int], int], str, bool]] = [
    (refused_by_a_service, "urllib.error.URLError: <urlopen error .*refused", True),
    (no_such_host, "socket.gaierror: ", True),
    (throttled, "test_whose_fault.Throttled: slow down", True),
    (carried, "RuntimeError: could not ask", True),
    (database_away, "psycopg2.OperationalError: ", True),
    (not_installed, "ModuleNotFoundError: No module named 'nothing_of_this_name'", False),
    (misspelled, "NameError: name 'nn' is not defined", False),
    (miscalled, "TypeError: misspelled.. missing 1 required", False),
    (of_nobody_knows_what_kind, "LocalError: known only there", True),
]


def udf(check: Callable[[int], int]) -> Callable[[DataFrame], DataFrame]:
    return lambda events: events.select("k", F.udf(check, LongType())("n").alias("n"))


@pytest.mark.parametrize(
    "case", only(ELSEWHERE[0], of=ELSEWHERE), ids=lambda case: case[0].__name__
)
def test_a_service_that_is_away_and_a_mistake_on_the_executors_stop_the_run(
    weir: Installation, stream: StreamName, case: tuple[Callable[[int], int], str, bool]
) -> None:
    check, says, retryable = case
    consumer = weir.consumer(weir.group(stream), udf(check), "parquet:out", on_error="quarantine")
    with pytest.raises(BatchFailed, match=f"failed and stays open: .*{says}") as failed:
        consumer.run()
    assert failed.value.retryable is retryable
    assert_nothing_happened(weir)


def test_what_a_function_raises_about_an_event_on_the_executors_sets_it_aside(
    weir: Installation, stream: StreamName
) -> None:
    def picky(n: int) -> int:
        if n == 3:
            try:
                {"one": 1}["three"]
            except KeyError as error:
                raise NotForUs("three") from error
        return n

    report = weir.consumer(
        weir.group(stream), udf(picky), "parquet:out", on_error="quarantine"
    ).run()
    assert (report["events"], report["rejected"]) == (ROWS, 1)
    [reason] = weir.facts(stream.rejected)["reason"]
    assert reason.endswith("NotForUs: three")


ERRORS: list[tuple[str, bool, str]] = [
    ("cast(concat('a', id) AS int)", True, "[CAST_INVALID_INPUT]"),
    ("1 / (id - 1)", True, "[DIVIDE_BY_ZERO]"),
    ("raise_error('mine')", True, "[USER_RAISED_EXCEPTION] mine"),
    ("array(1)[id]", True, "[INVALID_ARRAY_INDEX]"),
    ("java_method('java.lang.System', 'exit', 'x')", False, ""),
]


def test_sparks_errors_are_told_apart(weir: Installation, tmp_path: Path) -> None:
    for expression, events, said in ERRORS:
        with pytest.raises(Exception, match=r"\S") as failed:
            weir.spark.range(3).selectExpr(f"{expression} AS x").collect()
        assert isinstance(failed.value, Exception)
        assert caused_by_events(failed.value) is events, expression
        assert sentence(failed.value).startswith(said)
    with pytest.raises(AnalysisException) as mistaken:
        weir.spark.range(3).select("nothing")
    assert not caused_by_events(mistaken.value)
    # A file that is gone, or damaged, is no fault of the events in it.
    weir.spark.range(3).write.parquet(str(tmp_path / "x"))
    frame = weir.spark.read.parquet(str(tmp_path / "x"))
    for path in (tmp_path / "x").glob("*.parquet"):
        path.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as failed:
        frame.collect()
    assert not isinstance(failed.value, PySparkException)
    assert not caused_by_events(failed.value)
    error: Any = ValueError("two\nlines")
    assert sentence(error) == "ValueError: two"
    assert sentence(ValueError()) == "ValueError"


def test_a_call_that_java_does_not_answer_says_that_the_jvm_has_ended() -> None:
    for said in (  # by py4j when its connection breaks
        "An error occurred while calling None.None",
        "An error occurred while calling o12.collect",
        "SparkConf does not exist in the JVM",
    ):
        assert "Spark's JVM has ended" in first_cause(Py4JError(said))
    for said in (
        "An error occurred while calling o12.none. Trace:\nno such method\n",
        "com.example.Tool.none does not exist in the JVM",
    ):
        assert "Spark's JVM" not in first_cause(Py4JError(said))


def test_a_job_whose_words_nobody_reads_says_that_the_jvm_has_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as jvm:
        monkeypatch.setenv("PYSPARK_GATEWAY_PORT", str(jvm.getsockname()[1]))
        assert "Broken pipe" in failure_of(BrokenPipeError(errno.EPIPE, "Broken pipe"))[0]
    sentence, retryable = failure_of(BrokenPipeError(errno.EPIPE, "Broken pipe"))
    assert "Spark's JVM has ended" in sentence
    assert retryable
