"""What the next run of retention would do, as JSON and in a browser."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.world.groups import Group
from tests.world.retention import consume
from tests.world.streams import Lane, rows
from weir.database.connection import Database
from weir.retention.capture import capture
from weir.retention.run import retain


def told(client: TestClient, **given: Any) -> Any:
    answer = client.get("/api/retention", params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def limited(database: Database, name: str, events: int) -> tuple[Lane, Group]:
    """Return a stream from which so many events would go, and a group that has not read them."""
    lane = Lane.made(database, 1, name=name, retention="size", retain_max_bytes=10)
    group = Group.made(lane)
    lane.append({"0.0": events})
    capture(database)
    lane.append({"0.0": 1})
    capture(database)
    return lane, group


def test_without_anything_to_decide_it_is_empty(client: TestClient, database: Database) -> None:
    Lane.made(database)  # it keeps everything
    assert told(client) == {"decisions": [], "due": 0, "limited": 0, "next": None}


def test_it_says_what_the_run_then_does(client: TestClient, database: Database) -> None:
    lane, group = limited(database, "shop/orders", 5)
    found = told(client)
    [decision] = found["decisions"]
    assert (found["due"], found["limited"], found["next"]) == (1, 1, None)
    assert (decision["stream"], decision["rule"]) == (str(lane.name), "max_bytes")
    assert "maximum size" in decision["reason"]
    assert (decision["events"], decision["bytes"]) == (5, 50)
    assert decision["lost"] == {group.name: 5}
    [report] = retain(database)
    assert (report["events"], report["lost"]) == (decision["events"], decision["lost"])
    assert rows(database, "SELECT lost_events FROM lag")[0].lost_events == 5


def test_pages_have_each_stream_once_those_with_a_maximum_first(
    client: TestClient, database: Database
) -> None:
    for i in range(4):
        lane = Lane.made(database, 1, name=f"a/s{i}", retention="consumed")
        consume(Group.made(lane))
    for i in range(3):
        limited(database, f"b/s{i}", 2)
    found, after = [], ""
    while True:
        answer = told(client, limit=2, after=after)
        assert (answer["due"], answer["limited"]) == (7, 3)
        assert len(answer["decisions"]) <= 2
        found += [one["stream"] for one in answer["decisions"]]
        if not (after := answer["next"] or ""):
            break
    assert found == [f"b/s{i}" for i in range(3)] + [f"a/s{i}" for i in range(4)]


@pytest.mark.parametrize("after", ["x", "2 a/s", "-1 a/s", "bench/s1"])
def test_an_answer_after_nonsense_is_refused(client: TestClient, after: str) -> None:
    assert client.get("/api/retention", params={"after": after}).status_code == 400
