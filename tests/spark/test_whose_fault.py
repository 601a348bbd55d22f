"""Under on_error=quarantine only what the events themselves hold sets them aside; whatever else
goes wrong, in Postgres or on the executors, stops the run with the batch open."""

import errno
import socket
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import psycopg2
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.raises import raises
from tests.released import only
from tests.spark.installation import Installation
from weir.errors import BatchFailed, DatabaseFailed, InvalidInput
from weir.model.names import StreamName
from weir.operations.runner import failure_of
from weir.spark import Reader
from weir.spark.failures.causes import caused_by_events
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


def triggered(body: str, kind: str = "TRIGGER t BEFORE INSERT") -> str:
    deferred = " DEFERRABLE INITIALLY DEFERRED" if "CONSTRAINT" in kind else ""
    return f"""CREATE TABLE public.results (k text, n bigint);
        CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {body} RETURN NEW; END $$;
        CREATE {kind} ON public.results{deferred} FOR EACH ROW EXECUTE FUNCTION public.f()"""


# What is the matter with the table, and what Postgres says.
TROUBLES: dict[str, tuple[str, str]] = {
    "a sequence without a right": (
        "CREATE TABLE public.results (id bigserial, k text, n bigint)",
        "permission denied for sequence results_id_seq.*lacks a right; run GRANT USAGE ON SEQUENCE",
    ),
    "a full disk": (triggered("RAISE 'disk full' USING ERRCODE = '53100';"), "disk full"),
    "a full disk at the end": (
        triggered("RAISE 'disk full' USING ERRCODE = '53100';",
                  "CONSTRAINT TRIGGER t AFTER INSERT"), "disk full"),
    "a function that is gone": (triggered("PERFORM public.gone();"), "gone.. does not exist"),
    "a table that is gone": (triggered("DELETE FROM public.gone;"), "gone. does not exist"),
    "a day without a partition": (
        "CREATE TABLE public.results (k text, n bigint) PARTITION BY RANGE (n);"
        "CREATE TABLE public.early PARTITION OF public.results FOR VALUES FROM (0) TO (3)",
        "no partition of relation",
    ),
    "a sequence at its end": (
        "CREATE SEQUENCE public.ids MAXVALUE 3; GRANT USAGE ON SEQUENCE public.ids TO PUBLIC;"
        "CREATE TABLE public.results (id int DEFAULT nextval('public.ids'), k text, n bigint)",
        "reached maximum value of sequence",
    ),
}  # fmt: skip


@pytest.mark.release
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_table_that_takes_no_row_stops_the_run(
    weir: Installation, stream: StreamName, test_database: TestDatabase, trouble: str
) -> None:
    made, says = TROUBLES[trouble]
    grant = "GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher"
    execute(test_database.owner_dsn, f"{made}; {grant}")
    group = weir.group(stream)
    with pytest.raises((BatchFailed, DatabaseFailed, InvalidInput), match=says):
        weir.consumer(group, same, "table:public.results", on_error="quarantine").run()
    assert weir.query("SELECT FROM public.results") == []
    assert_nothing_happened(weir)


@pytest.mark.release
def test_a_statement_that_takes_too_long_stops_the_run(
    weir: Installation, stream: StreamName, test_database: TestDatabase
) -> None:
    execute(
        test_database.owner_dsn,
        triggered("PERFORM pg_sleep(9);")
        + "; GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher;"
        f"ALTER DATABASE {test_database.name} SET statement_timeout = '3s'",
    )
    weir.database.dispose()  # new sessions have the limit
    group = weir.group(stream)
    with raises("database_failed statement timeout statement_timeout") as failed:
        weir.consumer(group, same, "table:public.results", on_error="quarantine").run()
    assert failed.value.retryable
    assert_nothing_happened(weir)


@pytest.mark.release
def test_a_table_that_is_dropped_before_the_commit_is_no_fault_of_the_rows(
    weir: Installation, stream: StreamName, test_database: TestDatabase
) -> None:
    execute(
        test_database.owner_dsn,
        "CREATE TABLE public.results (k text, n bigint);"
        "GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher",
    )
    with Reader(weir.spark, weir.group(stream), installation=weir.opened) as reader:
        batch = next(reader)
        batch.write("table:public.results", same(batch.events))
        execute(test_database.owner_dsn, "DROP TABLE public.results")
        with raises("table_changed public.results") as failed:
            batch.commit()
    assert not caused_by_events(failed.value)
    assert_nothing_happened(weir)


@pytest.mark.release
def test_rows_that_a_trigger_or_a_put_off_constraint_refuses_are_set_aside(
    weir: Installation, stream: StreamName, test_database: TestDatabase
) -> None:
    execute(
        test_database.owner_dsn,
        triggered("IF NEW.n = 2 THEN RAISE 'not two'; END IF;")
        + "; CREATE TABLE public.known (n bigint PRIMARY KEY);"
        "INSERT INTO public.known SELECT generate_series(0, 4);"
        "ALTER TABLE public.results ADD FOREIGN KEY (n) REFERENCES public.known "
        "DEFERRABLE INITIALLY DEFERRED;"
        "GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher",
    )
    report = weir.consumer(
        weir.group(stream), same, "table:public.results", on_error="quarantine"
    ).run()
    assert (report["events"], report["rejected"]) == (ROWS, 4)
    found = [n for (n,) in weir.query("SELECT n FROM public.results ORDER BY n")]
    assert found == [0, 1, 3, 4]
    reasons = sorted(weir.facts(stream.rejected)["reason"])
    assert "violates foreign key constraint" in reasons[0]
    assert "not two" in reasons[-1]


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


@pytest.mark.release
def test_the_functions_own_troubles_in_the_driver_stop_the_run(
    weir: Installation, stream: StreamName
) -> None:
    def asks(*_: Any) -> Any:
        carried(1)

    group = weir.group(stream)
    for function in (asks, lambda events: database_away(1)):
        with raises("batch_failed"):
            weir.consumer(group, function, "parquet:out", on_error="quarantine").run()
    assert_nothing_happened(weir)


@pytest.mark.release
def test_so_many_rejected_events_in_a_day_stop_every_run(
    weir: Installation, stream: StreamName
) -> None:
    weir.settings = replace(weir.settings, rejected_events=2)

    def fails(events: DataFrame) -> DataFrame:
        raise RuntimeError("always")

    group = weir.group(stream, start="tail")
    for n in range(2):
        weir.put(stream, [("key", 100 + n)])
        report = weir.consumer(group, fails, "parquet:out", on_error="quarantine").run()
        assert report["rejected"] == 1
    weir.put(stream, [("key", 102)])
    for _ in range(2):
        with raises("too_many_rejected readers 2"):
            weir.consumer(group, fails, "parquet:out", on_error="quarantine").run()
    assert list(weir.facts(stream.rejected)["place"]) == [ROWS, ROWS + 1]
    assert weir.value("SELECT unread_events FROM lag") == 1


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
