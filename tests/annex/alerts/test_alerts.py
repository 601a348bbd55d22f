"""Each alert is told once when it begins and once when it ends, by any notifier of Airflow."""

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from airflow.sdk import DAG, BaseNotifier
from airflow.sdk.exceptions import AirflowException

import weir
from tests.crash.jobs import wait_for
from tests.world.streams import rows, run
from weir.annex.alerts.operator import AlertsOperator
from weir.database.connection import Database
from weir.programs.store import StreamStore
from weir.settings import Settings

Execute = Callable[..., Any]


class Noted(BaseNotifier):  # type: ignore[misc]  # of a module without types
    """Notes what it was told, with its template filled in."""

    template_fields = ("line",)
    said: ClassVar[list[str]] = []

    def __init__(self) -> None:
        super().__init__()
        self.line = "{{ weir_alert.alert }} {{ weir_alert.reader_group }} {{ weir_alert.ended }}"

    def notify(self, context: Any) -> None:
        assert context["weir_alert"]["message"]
        self.said.append(self.line)


def operator(notify: Any) -> AlertsOperator:
    with DAG("watching"):
        return AlertsOperator(task_id="alerts", notify=notify)


def time_out(database: Database, *groups: str) -> None:
    """Wait until these subscribers have timed out, a second after what they have not read."""
    run(database, "UPDATE reader_group SET time_out = 1")
    told = "SELECT FROM retention_alerts WHERE reader_group = ANY(:g)"
    wait_for("alerts", lambda: len(rows(database, told, g=list(groups))) == len(groups))


@pytest.fixture
def store(settings: Settings, database: Database) -> Any:
    """Two subscribers of a stream that have timed out."""
    with weir.open(settings=settings) as opened:
        opened.create_stream("shop/orders", "n", retention="consumed")
        for group in ("slow", "slower"):
            opened.create_reader_group(group, ["shop/orders"], time_out="1 min")
        opened.append("shop/orders", [{"n": 1}])
        time_out(database, "slow", "slower")
        yield opened


def read(store: StreamStore, group: str) -> None:
    for batch in store.reader(group):
        batch.commit({})


def test_an_alert_is_told_once_when_it_begins_and_once_when_it_ends(
    store: StreamStore, execute: Execute, database: Database
) -> None:
    Noted.said.clear()
    assert execute(operator(Noted()))["begun"] == 2
    assert Noted.said == ["timed out slow False", "timed out slower False"]
    assert execute(operator(Noted()), 2)["begun"] == 0, "nothing is new"
    read(store, "slow")
    assert execute(operator([Noted()]), 3)["ended"] == 1
    assert Noted.said[2:] == ["timed out slow True"]
    store.append("shop/orders", [{"n": 2}])
    time_out(database, "slow")
    assert execute(operator(Noted()), 4)["begun"] == 1, "it is another alert"
    identities = {
        one["identity"]
        for [report] in rows(database, "SELECT report FROM job_run WHERE job = 'alerts'")
        for one in report["open"].values()
    }
    assert identities == {
        "timed out shop/orders slow #1", "timed out shop/orders slower #1",
        "timed out shop/orders slow #2",
    }  # fmt: skip


def test_what_was_told_before_a_kill_is_remembered_and_the_rest_has_the_same_identity(
    store: StreamStore, execute: Execute
) -> None:
    told: list[str] = []

    def killed(context: Any) -> None:
        told.append(context["weir_alert"]["identity"])
        if len(told) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        execute(operator(killed))
    execute(operator(killed), 2)
    first, second, third = told
    assert first.startswith("timed out shop/orders slow ")
    assert second == third, "told again, as the same"


def test_an_alert_that_comes_back_while_another_can_not_be_told_is_another_one(
    store: StreamStore, execute: Execute, database: Database
) -> None:
    told: list[str] = []

    def half(context: Any) -> None:
        if "slower" in context["weir_alert"]["identity"]:
            raise OSError("mail is away")
        told.append(context["weir_alert"]["identity"])

    for attempt in (1, 2, 3):
        if attempt == 2:
            read(store, "slow")
        elif attempt == 3:
            store.append("shop/orders", [{"n": 2}])
            time_out(database, "slow")
        with pytest.raises(AirflowException, match="some_failed"):
            execute(operator(half), attempt)
    first, ended, second = told
    assert first == ended
    assert second != first


def test_a_notifier_that_fails_is_asked_again_and_hides_no_other_alert(
    store: StreamStore, execute: Execute
) -> None:
    told: list[str] = []
    away = [True]

    def flaky(context: Any) -> None:
        told.append(context["weir_alert"]["identity"])
        if away[0] and len(told) == 1:
            raise OSError("mail is away")

    with pytest.raises(AirflowException, match="some_failed"):
        execute(operator(flaky))
    away.clear()
    away.append(False)
    execute(operator(flaky), 2)
    assert [one.split()[3] for one in told] == ["slow", "slower", "slow"]
    assert told[0] == told[2]
