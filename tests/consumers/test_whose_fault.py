"""Under on_error=quarantine only what the events themselves hold sets them aside; whatever else
goes wrong, in Postgres or in the function, stops the run with the batch open."""

import pyarrow as pa
import pytest

import weir
from tests.conftest import TestDatabase
from tests.consumers.test_failures import consumer
from tests.consumers.test_reader import append, found
from tests.crash.jobs import execute
from tests.raises import raises
from weir.errors import WeirError

GRANT = "GRANT SELECT, INSERT ON public.results TO weir_jobs, weir_publisher"


def assert_nothing_happened(store: weir.StreamStore) -> None:
    assert found(store, "SELECT state, events FROM reader_batch") == [("open", 8)]
    assert found(store, "SELECT FROM stream WHERE name LIKE '%.rejected'") == []


def triggered(body: str, kind: str = "TRIGGER t BEFORE INSERT") -> str:
    deferred = " DEFERRABLE INITIALLY DEFERRED" if "CONSTRAINT" in kind else ""
    return f"""CREATE TABLE public.results (k text, n bigint);
        CREATE FUNCTION public.f() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN {body} RETURN NEW; END $$;
        CREATE {kind} ON public.results{deferred} FOR EACH ROW EXECUTE FUNCTION public.f()"""


FULL = "RAISE 'disk full' USING ERRCODE = '53100';"
# What the matter is with the table, and what is said. Each state of Postgres has its sentence in
# tests/reader_groups/test_refused_rows.py.
TROUBLES: dict[str, tuple[str, str]] = {
    "a sequence without a right": (
        "CREATE TABLE public.results (id bigserial, k text, n bigint)",
        "permission denied for sequence results_id_seq.*lacks a right; run GRANT USAGE ON SEQUENCE",
    ),
    "a full disk": (triggered(FULL), "disk full"),
    "a full disk at the end": (triggered(FULL, "CONSTRAINT TRIGGER t AFTER INSERT"), "disk full"),
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
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_table_that_takes_no_row_stops_the_run(
    store: weir.StreamStore, test_database: TestDatabase, trouble: str
) -> None:
    append(store, range(8))
    made, says = TROUBLES[trouble]
    execute(test_database.owner_dsn, f"{made}; {GRANT}")
    with pytest.raises(WeirError, match=says):
        consumer(store, lambda e: e, "table:public.results", on_error="quarantine").run()
    assert found(store, "SELECT FROM public.results") == []
    assert_nothing_happened(store)


def test_a_statement_that_takes_too_long_stops_the_run(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    append(store, range(8))
    execute(
        test_database.owner_dsn,
        f"""{triggered("PERFORM pg_sleep(9);")}; {GRANT};
        ALTER DATABASE {test_database.name} SET statement_timeout = '1s'""",
    )
    store.database.dispose()  # new sessions have the limit
    with raises("database_failed statement timeout statement_timeout") as failed:
        consumer(store, lambda e: e, "table:public.results", on_error="quarantine").run()
    assert failed.value.retryable
    assert_nothing_happened(store)


def test_rows_that_a_trigger_or_a_put_off_constraint_refuses_are_set_aside(
    store: weir.StreamStore, test_database: TestDatabase
) -> None:
    append(store, range(8))
    execute(
        test_database.owner_dsn,
        triggered("IF NEW.n = 2 THEN RAISE 'not two'; END IF;")
        + "; CREATE TABLE public.known (n bigint PRIMARY KEY);"
        "INSERT INTO public.known SELECT generate_series(0, 4);"
        "ALTER TABLE public.results ADD FOREIGN KEY (n) REFERENCES public.known "
        f"DEFERRABLE INITIALLY DEFERRED; {GRANT}",
    )
    done = consumer(store, lambda e: e, "table:public.results", on_error="quarantine").run()
    assert (done["events"], done["rejected"]) == (8, 4)
    rows = found(store, "SELECT n FROM public.results ORDER BY n")
    assert [n for (n,) in rows] == [0, 1, 3, 4]
    reasons = sorted(store.read("s/in.rejected")["reason"].to_pylist())
    assert "violates foreign key constraint" in reasons[0]
    assert "not two" in reasons[-1]


def test_what_fails_only_once_is_not_set_aside(store: weir.StreamStore) -> None:
    append(store, [1, 8])  # of one key
    calls: list[int] = []

    def flickering(events: pa.Table) -> pa.Table:
        calls.append(events.num_rows)
        if len(calls) in (1, 2):  # also the first time an event is alone
            raise RuntimeError("once")
        return events

    done = consumer(store, flickering, "stream:s/out", on_error="quarantine").run()
    assert calls == [2, 1, 1, 1]
    assert (done["rejected"], store.count("s/out")) == (0, 2)


def test_what_was_killed_before_has_not_failed(store: weir.StreamStore) -> None:
    append(store, [1])
    with store.reader("g", reader_id="reader") as reader:
        next(reader)  # the first attempt, which ends without a word
    calls: list[int] = []

    def flickering(events: pa.Table) -> pa.Table:
        calls.append(events.num_rows)
        if len(calls) == 1:
            raise RuntimeError("once")
        return events

    done = consumer(store, flickering, "stream:s/out", on_error="quarantine").run()
    assert (calls, done["rejected"], store.count("s/out")) == ([1, 1], 0, 1)
