"""Links from a task lead to pages, which show what Weir knows, and nothing as code."""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from fastapi.testclient import TestClient

import weir
from tests.crash.jobs import write_config
from tests.world.streams import unique
from weir.airflow import CheckpointOperator, ScaleOperator, access, weir_append
from weir.airflow.links import ReportLink, SubjectLink
from weir.airflow.pages import app
from weir.history.job_runs import RunId
from weir.settings import Settings

Execute = Callable[..., Any]


def shown(operator: Any, link: Any) -> tuple[str, str]:
    """Return where a link leads below the mount, and its query."""
    address = urlsplit(link.get_link(operator, ti_key=RunId("mine", "r", operator.task_id)))
    path = f"{address.path.partition('/weir')[2]}?{address.query}"
    return path, address.query


@pytest.fixture
def pages(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., tuple[int, str]]]:
    """Yield `pages(path)`: the status and the text, as a user of Airflow who may read."""
    monkeypatch.setenv("WEIR_CONFIG", str(write_config(settings)))
    for one in (access.may_look_through, access.may_see_runs, access.may_see_streams):
        app.dependency_overrides[one] = lambda: None
    client = TestClient(app)

    def get(path: str) -> tuple[int, str]:
        answer = client.get(path)
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        return answer.status_code, answer.text

    yield get
    app.dependency_overrides.clear()


def test_without_a_login_there_is_no_page(settings: Settings) -> None:
    client = TestClient(app)
    for path in (
        "/api/runs/d?run_id=r",
        "/api/runs",
        "/api/streams",
        "/api/streams/a/b",
        "/api/groups/g",
    ):
        assert client.get(path).status_code in (401, 403), path
    assert client.get("/api/openapi.json").status_code in (401, 403)
    for path in ("/docs", "/openapi.json", "/redoc"):
        assert client.get(path).status_code == 404


def test_a_task_leads_to_its_report_its_stream_and_its_group(
    execute: Execute, pages: Callable[..., tuple[int, str]], settings: Settings
) -> None:
    name = unique("pages")
    with weir.open(settings=settings) as store:
        store.create_stream(f"test/{name}", "n", segments=2)
        store.create_reader_group(name, [f"test/{name}"])
    with DAG("mine", schedule=None):

        @weir_append(stream=f"test/{name}", task_id=f"append-{name}")  # type: ignore[untyped-decorator]
        def numbers() -> list[dict[str, Any]]:
            return [{"n": 1, "text": "<script>alert(1)</script>"}] * 3

        append = numbers().operator
        scale = ScaleOperator(
            task_id=f"scale-{name}", stream=f"test/{name}", segments=["9.9"], engine="pyarrow"
        )
        checkpoint = CheckpointOperator(
            task_id=f"c-{name}", reader_group=name, name="noon", engine="auto"
        )
    execute(append)
    execute(checkpoint)
    with pytest.raises(AirflowFailException):
        execute(scale)

    def report(operator: Any) -> tuple[int, str]:
        path, query = shown(operator, ReportLink())
        assert path.startswith("/run?")
        given = {name: value for name, [value] in parse_qs(query).items()}
        return pages(f"/api/runs/{given.pop('dag_id')}?{urlencode(given)}")

    status, page = report(append)
    assert (status, '"succeeded"' in page) == (200, True)
    assert f"test/{name}" in page
    assert "transaction_number" in page
    status, page = report(scale)
    assert (status, "9.9" in page, '"failed"' in page) == (200, True, True)
    assert shown(append, SubjectLink())[0] == f"/stream?name=test%2F{name}"
    status, page = pages(f"/api/streams/test/{name}")
    assert (status, '"events":3' in page) == (200, True)
    assert shown(checkpoint, SubjectLink())[0] == f"/group?name={name}"
    status, page = pages(f"/api/groups/{name}")
    assert (status, '"noon"' in page) == (200, True)
    status, page = pages("/api/runs/mine?run_id=no&task_id=no")
    assert (status, "run_not_found" in page) == (404, True)


def test_a_link_says_which_installation_it_is_of() -> None:
    with DAG("mine", schedule=None):
        one = CheckpointOperator(task_id="c", reader_group="g", name="n", conn_id="weir_shop")
    _, query = shown(one, ReportLink())
    assert parse_qs(query)["conn_id"] == ["weir_shop"]
    assert {link.name for link in one.operator_extra_links} >= {"Weir: report", "Spark"}
