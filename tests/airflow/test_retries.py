"""A job in a DAG of one's own is retried though nobody said so, and as somebody says if he does."""

from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import DAG

from weir.airflow.operators import WeirJobOperator

ARGUMENTS = {"stream": "shop/orders", "files": ["orders.parquet"]}


def test_a_job_of_ones_own_dag_is_retried_unless_the_task_or_the_dag_says_otherwise() -> None:
    def made(said: dict[str, Any], **given: Any) -> Any:
        with DAG("mine", schedule=None, default_args=said):
            return WeirJobOperator(task_id="t", job="ingest", arguments=ARGUMENTS, **given)

    task = made({})
    assert task.retries == 3
    assert task.retry_delay <= timedelta(seconds=30)
    assert made({}, retries=0).retries == 0
    assert made({"retries": 1}).retries == 1
    other = made({"retry_delay": timedelta(minutes=7)})
    assert (other.retries, other.retry_delay) == (3, timedelta(minutes=7))


@pytest.mark.parametrize("ending", ["success", "failure", "retry"])
def test_who_is_to_be_called_in_the_end_is_called_whether_task_or_dag_says_so(ending: str) -> None:
    def mine(_: object) -> None:
        """Call a pager."""

    name = f"on_{ending}_callback"
    called: dict[str, Any] = {name: [mine]}
    with DAG("mine", schedule=None, default_args={name: mine}):
        one = WeirJobOperator(task_id="t", job="ingest", arguments=ARGUMENTS)
    with DAG("other", schedule=None):
        other = WeirJobOperator(task_id="t", job="ingest", arguments=ARGUMENTS, **called)
    assert getattr(one, name) == getattr(other, name)
    assert getattr(one, name)[0] is mine


def test_the_sentence_why_a_task_failed_is_shown_below_what_is_folded(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with DAG("mine", schedule=None):
        task = WeirJobOperator(task_id="t", job="ingest", arguments=ARGUMENTS)
    with caplog.at_level("INFO", "weir.airflow"):
        for told in (*task.on_failure_callback, *task.on_retry_callback):
            told({"exception": ValueError("what is wrong")})
    assert caplog.messages == ["::endgroup::", "what is wrong"] * 2
