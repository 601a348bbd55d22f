"""The reader groups, and one of them, as JSON."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.pages.conftest import pages, told
from tests.pages.test_streams import NOW, lag, trouble
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run, unique
from weir.database.connection import Database
from weir.pages.health import health_of_group
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.batches.streaming_query import StreamingQuery
from weir.reader_groups.checkpoints.lifecycle import checkpoint


def test_groups_come_in_pages_and_are_found_by_name(client: TestClient, database: Database) -> None:
    lane = Lane.made(database)
    made = sorted(Group.made(lane).name for _ in range(5))
    answers = list(pages(client, "groups", limit=2))
    assert [one["total"] for one in answers] == [5] * 3
    assert [row["reader_group"] for one in answers for row in one["groups"]] == made
    answer = client.get("/api/groups", params={"search": made[0].upper()}).json()
    assert made[0] in [one["reader_group"] for one in answer["groups"]]
    assert client.get("/api/groups", params={"search": "%"}).json()["total"] == 0


def test_a_group_says_who_reads_what_and_how_far_it_is(
    client: TestClient, database: Database
) -> None:
    one = Lane.made(database, retention="consumed")
    other = Lane.made(database, 1, retention="consumed")
    group = Group.made(one, other, subscriber=True)
    one.append({"0.0": 5, "1.0": 5})
    other.append({"0.0": 5})
    reader = group.reader("dag/run/task/0")
    batch = reader.must_open(3)
    told = client.get(f"/api/groups/{group.name}").json()
    lags = {row.stream: row for row in rows(database, "SELECT * FROM weir.lag")}
    assert {row["stream"]: row["unread_events"] for row in told["facts"]["streams"]} == {
        name: row.unread_events for name, row in lags.items()
    }
    assert told["facts"]["open_batches"] == 1
    assert told["facts"]["health"]["words"] == "15 events to read"
    assert len(told["positions"]) == 3
    assert {row["reader_id"] for row in told["positions"]} == {"dag/run/task/0"}
    [row] = told["batches"]
    assert (row["state"], row["reader_id"]) == ("open", "dag/run/task/0")
    assert [row["batch_id"] for row in told["readers"]] == [row["number"]]
    assert {row["stream"] for row in told["held"]} == {str(one.name), str(other.name)}
    assert told["waiting"] == []

    checkpoint(database, group.name, name="noon", barrier=True, request_id=unique("noon"))
    told = client.get(f"/api/groups/{group.name}").json()
    [waits] = told["waiting"]
    assert (waits["reason"], waits["waits_for"]) == ("checkpoint noon", "dag/run/task/0")
    assert [(row["name"], row["state"]) for row in told["checkpoints"]] == [("noon", "waiting")]
    reader.commit(batch)
    told = client.get(f"/api/groups/{group.name}").json()
    assert told["waiting"] == []
    assert [(row["name"], row["state"]) for row in told["checkpoints"]] == [("noon", "complete")]


def test_the_lease_of_a_streaming_query_has_no_end(client: TestClient, database: Database) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 5})
    group = Group.made(lane)
    query = StreamingQuery(database, group.name, group.group_id, "spark-1")
    reading = Reading(Budget(9, 9, 9))
    number = query.next(0, reading, None, 60.0)
    leases = [
        one["lease_until"] for one in client.get(f"/api/groups/{group.name}").json()["readers"]
    ]
    assert None not in leases, "its checkpoint does not know it yet"
    query.batch(number, reading, 60.0)
    [row] = client.get(f"/api/groups/{group.name}").json()["readers"]
    assert (row["lease_until"], row["lease_expired"]) == (None, False)


def test_a_page_of_groups_costs_as_many_statements_for_many_as_for_one(
    statements: Callable[[str], int], database: Database
) -> None:
    lane = Lane.made(database)
    first = Group.made(lane, subscriber=True)
    one = statements("groups"), statements(f"groups/{first.name}")
    for _ in range(4):
        more = Lane.made(database)
        group = Group.made(lane, more, subscriber=True)
        more.append({"0.0": 3})
        group.reader().must_open(2)
    assert (statements("groups"), statements(f"groups/{group.name}")) == one


@pytest.mark.parametrize(
    ("given", "level", "words"),
    [
        ((1, False, [lag()], []), "good", "all is read"),
        ((0, True, [lag()], []), "rest", "at its end"),
        ((1, False, [lag(2, NOW), lag(3, NOW)], []), "good", "5 events to read"),
        ((0, False, [lag(1, NOW)], []), "good", "1 event to read, no reader"),
        ((0, False, [lag(1, NOW)], [trouble("no reader", severity="red")]), "bad", "no reader"),
    ],
)  # fmt: skip
def test_the_health_of_a_group_says_the_worst_first(given: Any, level: str, words: str) -> None:
    found = health_of_group(*given)
    assert (found.level, found.words) == (level, words)


def test_a_stream_that_keeps_everything_is_held_by_nobody(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database)
    group = Group.made(lane, subscriber=True)
    lane.append({"0.0": 5})
    found = told(client, f"groups/{group.name}")
    assert (found["held"], found["facts"]["holds"]) == ([], False)
    [cost] = told(client, f"groups/{group.name}/cost")["costs"]
    assert (cost["kept_bytes"], cost["kept_alone_bytes"]) == (0, 0)
    [why] = told(client, f"streams/{lane.name}/why")["reasons"]
    assert why["why"] == "retention is keep, so the stream keeps everything"
    run(database, "UPDATE stream SET retention = 'consumed'")
    found = told(client, f"groups/{group.name}")
    assert (found["held"][0]["held_events"], found["facts"]["holds"]) == (5, True)
