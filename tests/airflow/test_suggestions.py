"""Forms suggest the names that there are, and a parser of DAG files waits for nobody."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from sqlalchemy import text

import weir
from tests.conftest import TestDatabase
from tests.crash.jobs import write_config
from weir.airflow import suggestions
from weir.airflow.dags import weir_dags
from weir.database.connection import Database
from weir.settings import Settings


@pytest.fixture(autouse=True)
def configured(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    monkeypatch.setattr(suggestions, "PATIENCE", 120)  # of a parser on a machine that is busy


def examples(dags: dict[str, DAG], dag: str, field: str) -> list[str]:
    found: list[str] = dags[dag].params.get_param(field).schema.get("examples", [])
    return found


def as_kept(dags: dict[str, DAG]) -> dict[str, Any]:
    """What Airflow keeps of each DAG, and compares to see whether it has changed."""
    return {name: DagSerialization.to_dict(dag) for name, dag in dags.items()}


def test_a_form_suggests_what_exists_and_nothing_for_a_new_name(settings: Settings) -> None:
    with weir.open(settings=settings) as store:
        for name in ("shop/orders", "shop/prices"):
            store.create_stream(name, "n")
        store.create_reader_group("totals", ["shop/orders"])
        store.define_adjunct_store("shop/latest", "shop/prices")
    dags = weir_dags()
    for dag in ("weir_ingest", "weir_truncate_stream", "weir_verify", "weir_define_adjunct_store"):
        assert examples(dags, dag, "stream") == ["shop/orders", "shop/prices"], dag
    for dag in ("weir_process", "weir_truncate_stream", "weir_fork_reader_group"):
        assert examples(dags, dag, "reader_group") == ["totals"], "not that of a store"
    assert examples(dags, "weir_delete_adjunct_store", "adjunct_store") == ["shop/latest"]
    for dag, field in (
        ("weir_create_stream", "stream"), ("weir_create_reader_group", "reader_group"),
        ("weir_fork_reader_group", "new_reader_group"),
        ("weir_define_adjunct_store", "adjunct_store"),
    ):  # fmt: skip
        assert not examples(dags, dag, field)
    streams = dags["weir_create_reader_group"].params.get_param("streams")
    assert "examples" not in streams.schema, "Airflow's field would take nothing else"
    assert streams.description is not None
    assert streams.description.endswith("There are: shop/orders, shop/prices.")
    assert dags["weir_ingest"].params.get_param("stream").resolve("shop/another") == "shop/another"


def test_what_airflow_keeps_changes_with_the_names_alone_and_not_of_what_runs_by_itself(
    settings: Settings,
) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("shop/orders", "n")
        before = as_kept(weir_dags())
        assert as_kept(weir_dags()) == before
        store.append("shop/orders", [{"n": 1}])
        assert as_kept(weir_dags()) == before, "an append changes no form"
        store.create_stream("shop/more", "n")
    after = as_kept(weir_dags())
    changed = {name for name in after if after[name] != before[name]}
    assert {"weir_ingest", "weir_delete_stream"} <= changed
    assert not {name for name in changed if after[name]["dag"]["timetable"]["__var"]}, (
        "none runs by itself"
    )


def test_of_many_those_are_suggested_that_were_used_lately(
    database: Database, settings: Settings
) -> None:
    with weir.open(settings=settings) as store:
        for number in range(suggestions.MOST + 3):
            store.create_stream(f"many/s{number:03}", "n")
    with database.engine.begin() as connection:
        connection.execute(
            text("""UPDATE weir_internal.stream SET last_clock = last_clock - 30 * 86400000000
                WHERE name < 's003'""")
        )
    found = suggestions.suggested_names()["stream"]
    assert found == [f"many/s{number:03}" for number in range(3, suggestions.MOST + 3)]


@contextmanager
def silent() -> Iterator[int]:
    """Yield a port at which somebody listens who never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_database_that_is_away_or_silent_costs_a_moment_and_the_names(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggestions, "PATIENCE", 0.1)
    with silent() as port:
        for there in (port, 1):
            away = replace(
                settings, database=f"host=127.0.0.1 port={there} dbname=weir user=x",
                connect_patience=100_000.0,
            )  # fmt: skip
            monkeypatch.setenv("WEIR_CONFIG", str(write_config(away)))
            before = set(threading.enumerate())
            assert suggestions.suggested_names() == {}
            if there == port:
                assert set(threading.enumerate()) - before, "it waited until it was given up"
            assert not examples(weir_dags(), "weir_ingest", "stream")


def test_a_table_that_somebody_has_locked_costs_a_moment_and_the_names(
    test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suggestions, "PATIENCE", 0.5)
    owner = Database(test_database.owner_dsn, patience=60.0, connect_patience=60.0)
    with owner.engine.begin() as connection:  # as long as the parser waits
        connection.execute(text("LOCK TABLE weir_internal.stream IN ACCESS EXCLUSIVE MODE"))
        assert suggestions.suggested_names() == {}


def test_a_task_that_reads_its_dag_file_asks_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def counted() -> dict[str, list[str]]:
        asked.append(1)
        return {}

    monkeypatch.setattr("weir.airflow.dags.suggested_names", counted)
    weir_dags()
    assert asked == [1]
    monkeypatch.setenv("_AIRFLOW_PARSING_CONTEXT_DAG_ID", "weir_ingest")
    assert list(weir_dags()) == ["weir_ingest"]
    assert asked == [1]
