"""What a mapped task is: the item of its list, not its index. A list that is made anew may have
another item at each index, so that by the index one would be appended twice and another never.

Equal items count by their order among themselves. A template may have the time, so values are
compared before templates are filled in.
"""

import hashlib
import itertools
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow.sdk.definitions._internal.expandinput import ListOfDictsExpandInput
from airflow.sdk.definitions.mappedoperator import MappedOperator
from airflow.sdk.execution_time.lazy_sequence import LazyXComSequence
from airflow.sdk.log import redact
from airflow.sdk.serde import serialize
from sqlalchemy import Connection, text

from weir.errors import Conflict, InvalidInput
from weir.history.job_runs import RunId
from weir.model.names import shortened

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator

    from weir.airflow.context import Context


@dataclass(frozen=True)
class Item:
    """The item of a mapped task, and the list in which it is now.

    `key`: equal for equal items, but that the second one in a list has another. `shown`: what
    people see of it. `listed`: the keys of all items of the list.
    """

    key: str
    shown: str
    listed: frozenset[str]


def item_of(task: "BaseOperator", context: "Context") -> Item | None:
    """Return the item of a task; None if the task is not mapped. Raises InvalidInput for one that
    can't be told from others, such as an object of a class of your own, and if it is gone."""
    index = context["ti"].map_index
    if index is None or index < 0:
        return None
    listed = _items(task, context)
    if index >= len(listed):
        raise InvalidInput(
            "item_not_repeatable",
            f"the list that task {task.task_id!r} is mapped over has {len(listed)} items and none "
            f"with index {index} any more; clear the task as a whole.",
        )
    try:
        digests = [_digest(one) for one in listed]
    except (TypeError, ValueError, RecursionError, AttributeError) as error:
        raise InvalidInput(
            "item_not_repeatable",
            f"item {index} of the list that task {task.task_id!r} is mapped over can't be compared "
            f"with the other ones ({type(error).__name__}: {error}), so a repetition would not "
            "know it; map over texts, numbers, times, lists and dictionaries.",
        ) from None
    mine = listed[index]
    before: Counter[str] = Counter()
    keys = []
    for one in digests:
        keys.append(f"{one}.{before[one]}" if before[one] else one)
        before[one] += 1
    shown = mine if len(mine) != 1 else next(iter(mine.values()))
    return Item(keys[index], shortened(redact(shown)), frozenset(keys))


def with_item(run: RunId, item: Item | None) -> RunId:
    """Return the run with its item."""
    return run if item is None else replace(run, item=item.key)


def check_item(connection: Connection, run: RunId, item: Item, batch_id: str) -> None:
    """Check that an append of a mapped task, whose start is recorded, repeats none of another item.

    `batch_id`: what the task has been given. Raises Conflict if this index has appended an item
    that the list does not have any more, because the item may be the same with another stamp; or if
    another item of the list has the same `batch_id`.
    """
    for one in connection.execute(_OTHERS, {**run.__dict__, "listed": list(item.listed)}):
        index, before = one.map_index, one.shown or "another item"
        if batch_id and one.listed and one.batch == batch_id:
            raise Conflict(
                "request_reused",
                f"items {index} ({before}) and {run.map_index} ({item.shown}) of task "
                f"{run.task_id!r} have the same batch_id, {batch_id!r}, so only one of them would "
                "be appended; give a batch_id that has the item in it, such as "
                "{{ ds }} {{ task.op_kwargs['file'] }}.",
            )
        if not batch_id and not one.listed and index == run.map_index and one.replaced:
            raise Conflict(
                "input_changed",
                f"index {index} of task {run.task_id!r} had another item in this run, {before}, "
                f"which the list has no more and which may be appended; now it has {item.shown}, "
                "and whether that is the same one is not known; give back the list as it was, or "
                "let a batch_id say which items are the same, and start another run.",
            )


_MAY_BE_APPENDED = "state <> 'failed' AND (report IS NULL OR report ? 'transaction_number')"
_OTHERS = text(
    f"""SELECT map_index, arguments ->> 'item' AS shown, arguments ->> 'batch_id' AS batch,
        item = ANY(:listed) AS listed, {_MAY_BE_APPENDED} AND NOT EXISTS (
            SELECT FROM job_run WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
            AND item = :item AND {_MAY_BE_APPENDED}
            AND (map_index, try_number) <> (:map_index, :try_number)) AS replaced
    FROM job_run WHERE dag_id = :dag_id AND run_id = :run_id AND task_id = :task_id
        AND job = 'append' AND item <> '' AND item <> :item
    ORDER BY map_index, try_number DESC"""  # noqa: S608 - constant
)


def _items(task: "BaseOperator", context: "Context") -> list[Mapping[str, object]]:
    """Return the values of the mapped arguments for each index, as they are before templates are
    filled in: they do not change with a try."""
    planned = task.dag.task_dict[task.task_id]
    if isinstance(planned, MappedOperator):
        source: Any = planned._get_specified_expand_input()
    else:
        source = planned.get_closest_mapped_task_group()._expand_input
    if isinstance(source, ListOfDictsExpandInput):
        return [_known(one, context) for one in _listed(source.value, context)]
    lists = [_listed(value, context) for value in source.value.values()]
    # Airflow counts indexes so: the last argument changes first.
    return [dict(zip(source.value, each, strict=True)) for each in itertools.product(*lists)]


def _listed(value: object, context: object) -> list[object]:
    found = _known(value, context)
    if isinstance(found, LazyXComSequence):
        return list(found[:])  # with one question
    return list(found.items() if isinstance(found, Mapping) else found)


def _known(value: object, context: object) -> Any:
    """Return a value, or what another task has returned for it."""
    return value.resolve(context) if hasattr(value, "resolve") else value


def _digest(item: object) -> str:
    written = json.dumps(item, sort_keys=True, default=_plain)
    return hashlib.sha256(written.encode()).hexdigest()[:16]


def _plain(value: object) -> object:
    """Return what JSON can write in place of a value that it can't."""
    if isinstance(value, (set, frozenset)):  # which have another order in another process
        return ["set", *sorted(json.dumps(one, sort_keys=True, default=_plain) for one in value)]
    return serialize(value)
