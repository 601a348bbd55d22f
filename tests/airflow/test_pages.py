"""What the plugin serves in Airflow's API server, and to whom."""

import asyncio
from typing import Any

import pytest
from airflow.api_fastapi.core_api import security
from fastapi import HTTPException
from fastapi.security import HTTPAuthorizationCredentials
from fastapi.testclient import TestClient

from tests.conftest import TestDatabase
from tests.raises import raises
from weir.airflow import access, pages


@pytest.fixture
def client(test_database: TestDatabase, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """A client of the pages of an installation whose token is `secret`."""
    monkeypatch.setenv("WEIR_DATABASE", test_database.dsn)
    monkeypatch.setenv("WEIR_METRICS_TOKEN", "secret")
    return TestClient(pages.app)


def test_whoever_gives_the_token_reads_the_metrics(client: TestClient) -> None:
    answer = client.get("/metrics", headers={"Authorization": "Bearer secret"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    assert "\nweir_damaged_files 0.0\n" in answer.text


@pytest.mark.parametrize("token", ["", "secre", "sécret", "secret2"])
def test_no_other_token_is_one(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    asked = []

    async def nobody(*given: object) -> None:
        asked.append(given)
        raise HTTPException(401)

    monkeypatch.setattr(pages, "get_user", nobody)
    assert client.get("/metrics").status_code == 401
    given = HTTPAuthorizationCredentials(scheme="Bearer", credentials=token)
    for expected in ("secret", ""):  # an empty setting is no token
        monkeypatch.setenv("WEIR_METRICS_TOKEN", expected)
        with pytest.raises(HTTPException):
            asyncio.run(pages.may_look(None, given))  # type: ignore[arg-type]  # it is handed on
    assert len(asked) == 3
    assert security.get_user is not nobody


def test_a_database_that_is_away_is_one_sentence(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "WEIR_DATABASE", "host=127.0.0.1 port=1 dbname=weir user=weir_app password=hidden"
    )
    answer = client.get("/metrics", headers={"Authorization": "Bearer secret"})
    assert answer.status_code == 503
    assert "can't be reached" in answer.text
    assert "hidden" not in answer.text


def test_a_second_monitor_does_not_wait_for_the_first(client: TestClient) -> None:
    given = {"Authorization": "Bearer secret"}
    with pages._asking:
        answer = client.get("/metrics", headers=given)
    assert answer.status_code == 503
    assert "another monitor" in answer.text
    assert client.get("/metrics", headers=given).status_code == 200


def test_a_connection_is_looked_through_by_those_who_may_read_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    class Manager:
        def is_authorized_connection(self, **given: Any) -> bool:
            asked.append((given["method"], given["details"].conn_id))
            return bool(given["user"] == "op")

    monkeypatch.setattr("weir.airflow.access.get_auth_manager", Manager)
    monkeypatch.setattr("airflow.models.Connection.get_team_name", lambda conn_id: None)
    user: Any = "viewer"
    access.may_look_through(user)
    assert asked == []
    with pytest.raises(HTTPException) as refused:
        access.may_look_through(user, "weir_shop")
    assert refused.value.status_code == 403
    user = "op"
    access.may_look_through(user, "weir_shop")
    assert asked == [("GET", "weir_shop")] * 2
    with raises("airflow_not_found connection"):  # before a database is asked, which takes no NUL
        access.may_look_through(user, "weir\0shop")


@pytest.mark.parametrize(
    ("task_instances", "by_hand", "teams", "seen"),
    [
        (True, True, "False", None),
        (True, True, "True", {"shop", "by hand"}),  # not what other teams' DAGs do
        (True, False, "False", {"shop"}),
        (False, False, "False", set()),  # though they may see the DAG
    ],
)
def test_runs_are_listed_for_those_who_may_see_task_instances(
    monkeypatch: pytest.MonkeyPatch,
    task_instances: bool, by_hand: bool, teams: str, seen: set[str] | None,
) -> None:  # fmt: skip
    class Manager:
        def is_authorized_dag(self, **given: Any) -> bool:
            assert given["access_entity"].name == "TASK_INSTANCE"
            return by_hand if given["details"].id else task_instances

        def get_authorized_dag_ids(self, **_given: Any) -> set[str]:
            return {"shop"}

    monkeypatch.setattr("weir.airflow.access.get_auth_manager", Manager)
    monkeypatch.setenv("AIRFLOW__CORE__MULTI_TEAM", teams)
    user: Any = "viewer"
    assert access.seen_dags(user) == seen
