"""A mapped task is known by its item: what a list has is appended once, or the task is red."""

from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, task_group
from airflow.sdk.exceptions import AirflowFailException

import weir
from tests.world.groups import Group
from tests.world.streams import Lane, rows, unique
from weir.airflow import CheckpointOperator, weir_append
from weir.database.connection import Database
from weir.settings import Settings

Execute = Callable[..., Any]


@pytest.fixture
def stream(settings: Settings) -> str:
    name = f"test/{unique('items')}"
    with weir.open(settings=settings) as store:
        store.create_stream(name, "item")
    return name


def appended(settings: Settings, stream: str) -> dict[str, int]:
    """Return how many events each item has."""
    with weir.open(settings=settings) as store:
        found = store.read(stream)
    named = found["item"].to_pylist() if found.num_rows else []
    return {one: named.count(one) for one in sorted(set(named))}


MADE = count()


def of_item(item: Any) -> list[dict[str, Any]]:
    """Return the one event of an item, which is another one in each try."""
    return [{"item": str(item), "made": next(MADE)}]


def mapped_over(stream: str, listed: list[Any], **given: Any) -> Any:
    """Return a task that appends an event for each item of a list."""
    with DAG("mine", schedule=None):
        return weir_append(stream=stream, **given)(of_item).expand(item=listed).operator


class Mapped:
    """A task that appends an event for its item, mapped over a list that may be another one."""

    def __init__(self, execute: Execute, stream: str, **given: Any) -> None:
        self.execute, self.stream, self.given = execute, stream, given
        self.tries = 0

    def run(self, listed: list[Any], only: Any = None) -> list[str]:
        """Execute each index; return what became of them."""
        self.tries += 1
        mapped = mapped_over(self.stream, listed, **self.given)
        became = []
        for index, item in enumerate(listed):
            if only is not None and index not in only:
                continue
            try:
                one = mapped.unmap({"op_kwargs": {"item": item}})
                report = self.execute(one, self.tries, map_index=index)
                became.append("repeated" if report["repeated"] else "appended")
            except AirflowFailException as error:
                became.append(str(error).rpartition("[")[2].rstrip("]"))
        return became


@pytest.fixture
def mapped(execute: Execute, stream: str) -> Mapped:
    return Mapped(execute, stream)


@pytest.mark.parametrize(
    ("first", "then", "became", "there"),
    [
        ("abc", "abc", "rrr", "abc"),
        ("abc", "zabc", "arrr", "abcz"),
        ("abc", "bc", "rr", "abc"),
        ("abc", "cab", "rrr", "abc"),
        ("abc", "bcd", "rra", "abcd"),
        ("aab", "aab", "rrr", "aab"),
        ("aab", "aaab", "rrar", "aaab"),
        ("aab", "baa", "rrr", "aab"),
        ("abc", "axc", "rxr", "abc"),
        ("abc", "", "", "abc"),
        ("", "a", "a", "a"),
    ],
)  # fmt: skip
def test_a_list_that_is_mapped_anew_is_appended_once(
    first: str, then: str, became: str, there: str, mapped: Mapped, settings: Settings
) -> None:
    assert mapped.run(list(first)) == ["appended"] * len(first)
    words = {"r": "repeated", "a": "appended", "x": "input_changed"}
    assert mapped.run(list(then)) == [words[one] for one in became]
    again = ["input_changed" if one == "x" else "repeated" for one in became]
    assert mapped.run(list(then)) == again, "retried"
    assert appended(settings, mapped.stream) == {one: there.count(one) for one in there}


def test_values_are_compared_as_they_are(mapped: Mapped, settings: Settings) -> None:
    moment = datetime(2026, 6, 1, tzinfo=UTC)
    listed = [1, "1", 1.5, True, None, moment, {"b": 1, "a": [2]}, ("x",), {"t": {"y", "z", "w"}}]
    assert mapped.run(listed) == ["appended"] * len(listed)
    turned = [{"t": {"z", "w", "y"}}, ["x"], {"a": [2], "b": 1}, *reversed(listed[:6])]
    assert mapped.run(turned) == ["repeated"] * len(listed)


def test_an_item_that_can_not_be_compared_is_refused_before_anything_is_appended(
    mapped: Mapped, settings: Settings
) -> None:
    assert mapped.run([object()]) == ["item_not_repeatable"]
    assert appended(settings, mapped.stream) == {}


def test_an_index_beyond_the_list_is_refused(
    execute: Execute, stream: str, settings: Settings
) -> None:
    beyond = mapped_over(stream, ["a"]).unmap({"op_kwargs": {"item": "b"}})
    with pytest.raises(AirflowFailException, match="item_not_repeatable"):
        execute(beyond, map_index=1)
    assert appended(settings, stream) == {}


def test_a_changed_item_is_appended_if_the_one_before_was_not(
    mapped: Mapped, settings: Settings
) -> None:
    mapped.run(["a", "b"], only=[0])
    assert mapped.run(["a", "x"]) == ["repeated", "appended"]
    assert appended(settings, mapped.stream) == {"a": 1, "x": 1}


def test_a_batch_id_tells_the_items_apart(
    execute: Execute, stream: str, settings: Settings
) -> None:
    by_name = Mapped(execute, stream, batch_id="{{ run_id }} {{ task.op_kwargs['item'].name }}")
    one, two = {"name": "one", "at": "10:00"}, {"name": "two", "at": "10:01"}
    assert by_name.run([one, two]) == ["appended"] * 2
    stamped = [two | {"at": "11:00"}, one | {"at": "11:01"}, {"name": "three", "at": "11:01"}]
    assert by_name.run(stamped) == ["repeated", "repeated", "appended"]
    assert sum(appended(settings, stream).values()) == 3


def test_items_with_one_batch_id_are_refused(
    execute: Execute, stream: str, settings: Settings
) -> None:
    same = Mapped(execute, stream, batch_id="today")
    assert same.run(["a", "b"]) == ["appended", "request_reused"]
    assert appended(settings, stream) == {"a": 1}


def test_tasks_of_a_mapped_group_are_known_by_the_item_of_the_group(
    execute: Execute, stream: str, settings: Settings
) -> None:
    for number, listed in enumerate((["a", "b"], ["z", "a", "b"]), 1):
        with DAG("mine", schedule=None):

            @task_group  # type: ignore[untyped-decorator]
            def each(item: Any) -> None:
                weir_append(stream=stream, task_id="inner")(of_item)(item)

            dag = each.expand(item=listed).dag
        for index, item in enumerate(listed):
            operator = dag.get_task("each.inner")
            operator.op_args, operator.op_kwargs = [], {"item": item}
            execute(operator, number, map_index=index)
    assert appended(settings, stream) == {"a": 1, "b": 1, "z": 1}


def test_other_mapped_actions_are_done_once_for_an_item(
    execute: Execute, database: Database
) -> None:
    group = Group.made(Lane.made(database, name=f"test/{unique('stream')}"))
    for number, names in enumerate((["one", "two"], ["zero", "one", "two"]), 1):
        with DAG("mine", schedule=None):
            mapped = CheckpointOperator.partial(
                task_id="c", reader_group=group.name, engine="auto"
            ).expand(name=names)
        for index, name in enumerate(names):
            report = execute(mapped.unmap({"name": name}), number, map_index=index)
            assert report["checkpoint"] == name
    made = rows(database, "SELECT checkpoint FROM checkpoints WHERE reader_group = :g "
                "AND checkpoint IN ('zero', 'one', 'two')", g=group.name)  # fmt: skip
    assert len(made) == 3


def test_a_task_that_is_not_mapped_appends_once_for_its_run_or_its_batch_id(
    execute: Execute, stream: str, settings: Settings
) -> None:
    for number, batch in enumerate(("", "", "{{ run_id }} b", "{{ run_id }} b"), 1):
        with DAG("mine", schedule=None):
            one = weir_append(stream=stream, batch_id=batch, task_id="one")(of_item)(number)
        execute(one.operator, number)
    assert appended(settings, stream) == {"1": 1, "3": 1}


def test_a_pass_of_a_loop_is_refused_by_name(stream: str, settings: Settings) -> None:
    with DAG("mine", schedule=None):
        operator = weir_append(stream=stream, task_id="again")(of_item)("a").operator
    ti = SimpleNamespace(
        dag_id="mine", run_id="r", task_id="again", map_index=-1, try_number=1, region_id="r-1",
        region_index=2, stats_tags={},
    )  # fmt: skip
    with pytest.raises(AirflowFailException, match="item_not_repeatable"):
        operator.execute({"ti": ti})
    assert appended(settings, stream) == {}
