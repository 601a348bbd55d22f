"""The list of streams, and one stream, as JSON."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import pytest
from fastapi.testclient import TestClient

from tests.pages.conftest import pages, told
from tests.world.groups import Group
from tests.world.streams import Lane, run, unique
from weir.controller.seal import seal_stream
from weir.database.connection import Database
from weir.model.retention_policy import Policy
from weir.pages.activity import MOST, activity_of
from weir.pages.health import health_of
from weir.queries.pages.health import Lag, Trouble

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def test_a_row_has_the_numbers_of_the_views(client: TestClient, database: Database) -> None:
    lane = Lane.made(database, 2)
    group = Group.made(lane)
    lane.append({"0.0": 3, "1.0": 4})
    lane.append({"0.0": 3})
    reader = group.reader()
    reader.commit(reader.must_open(7))
    [row] = client.get("/api/streams").json()["streams"]
    [view] = lane.rows("SELECT * FROM weir.streams WHERE stream_id = :s")
    assert (row["events"], row["bytes"], row["appended"]) == (
        view.events_retained, view.bytes_retained, view.events_appended,
    )  # fmt: skip
    assert (row["events"], row["segments"], row["retention"]) == (10, 2, "everything")
    [lag] = lane.rows("SELECT * FROM weir.lag WHERE stream_id = :s")
    [told] = row["groups"]
    assert (told["reader_group"], told["unread_events"]) == (group.name, lag.unread_events)
    assert lag.unread_events > 0
    assert row["health"]["level"] == "good"
    assert f"{group.name} has {lag.unread_events} event" in row["health"]["words"]
    assert sum(row["activity"]["events"]) == 10


def test_pages_of_streams_have_each_once_in_each_order(
    client: TestClient, database: Database
) -> None:
    made = [str(Lane.made(database, 1, name=f"test/p{i:02}").name) for i in range(7)]
    run(
        database,
        "UPDATE stream SET last_clock = 5, created_at = 'epoch' "
        "WHERE name IN ('p01', 'p02', 'p03')",
    )
    for sort in ("name", "changed", "created"):
        answers = list(pages(client, "streams", sort=sort, limit=2))
        assert [one["total"] for one in answers] == [7] * 4
        found = [row["stream"] for one in answers for row in one["streams"]]
        assert sorted(found) == made
        if sort == "name":
            assert found == made
        else:
            assert found[4:] == ["test/p01", "test/p02", "test/p03"]
            assert found[:4] == ["test/p06", "test/p05", "test/p04", "test/p00"]


def test_streams_are_found_by_name_scope_tag_and_state(
    client: TestClient, database: Database
) -> None:
    for name in ("shop/orders", "shop/refunds", "nyc/orders", "nyc/a%b".replace("%", "_")):
        Lane.made(database, 1, name=name)
    run(database, "UPDATE stream SET tags = '{pii,gold}' WHERE stream_name = 'shop/orders'")
    sealed = Lane.made(database, 1, name="nyc/old")
    seal_stream(database, sealed.name, request_id=unique("seal"))

    def found(**given: str) -> list[str]:
        return [one["stream"] for one in told(client, "streams", **given)["streams"]]

    assert found(search="ORD") == ["nyc/orders", "shop/orders"]
    assert found(search="p/o") == ["shop/orders"]
    assert found(search="_") == ["nyc/a_b"]  # no pattern
    assert found(search="%") == []
    assert found(scope="nyc") == ["nyc/a_b", "nyc/old", "nyc/orders"]
    assert found(scope="ny") == []
    assert found(tag="gold") == ["shop/orders"]
    run(database, "UPDATE stream SET owner = 'weir_reader' WHERE stream_name = 'shop/refunds'")
    assert found(owner="weir_reader") == ["shop/refunds"]
    assert found(owner="nobody") == []
    assert found(state="sealed") == ["nyc/old"]
    assert found(scope="nyc", search="orders", state="active") == ["nyc/orders"]
    assert client.get("/api/scopes").json() == {
        "scopes": ["nyc", "shop"], "tags": ["gold", "pii"], "owners": ["weir_reader"],
    }  # fmt: skip
    wrong = client.get("/api/streams", params={"state": "gone"})
    assert wrong.status_code == 400
    assert wrong.json()["error"]["code"] == "argument_invalid"
    assert wrong.json()["error"]["sentence"].startswith("state is 'gone', which is wrong: ")
    assert found(search="'; DROP TABLE weir_internal.stream; --") == []


def test_a_page_costs_as_many_statements_for_many_streams_as_for_one(
    statements: Callable[[str], int], database: Database
) -> None:
    first = Lane.made(database)
    one = statements("streams"), statements(f"streams/{first.name}")
    for _ in range(5):
        lane = Lane.made(database)
        Group.made(lane)
        Group.made(lane)
        lane.append({"0.0": 3})
    assert (statements("streams"), statements(f"streams/{lane.name}")) == one
    assert one == (6, 14)


def test_a_stream_says_what_was_appended_decided_and_kept(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 2)
    Group.made(lane)
    for _ in range(25):
        lane.append({"0.0": 2})
    lane.truncate('{"0.0": 10, "1.0": 0}')
    told = client.get(f"/api/streams/{lane.name}").json()
    assert told["facts"]["stream"] == str(lane.name)
    assert (told["facts"]["events"], told["facts"]["appended"]) == (40, 50)
    assert [one["number"] for one in told["transactions"]] == list(range(25, 5, -1))
    assert told["transactions"][0]["events"] == 2
    assert told["files"]["files"] >= 20
    assert [one["name"] for one in told["columns"] if one["newest"]] == ["key"]
    assert told["settings"]["scaling"] == "fixed"
    assert "schema" not in told["settings"]
    assert told["completeness"] is None


def lag(unread: int = 0, since: datetime | None = None, name: str = "g") -> Lag:
    return Lag(
        stream="a/b",
        reader_group=name, unread_events=unread, unread_bytes=unread, lost_events=0,
        behind_since=since,
    )  # fmt: skip


def trouble(
    words: str, group: str | None = "g", severity: Literal["red", "amber"] = "amber"
) -> Trouble:
    return Trouble(
        kind=words, severity=severity, subject="a/b", stream="a/b", reader_group=group, since=NOW,
        words=words, sentence=words, advice="", action=None, given={}, page=None, query={},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "level", "words"),
    [
        (("active", 0, [], []), "rest", "empty"),
        (("active", 5, [], []), "good", "no group reads it"),
        (("active", 5, [lag()], []), "good", "all is read"),
        (("sealed", 5, [lag()], []), "rest", "sealed, and all is read"),
        (("active", 5, [lag(5, NOW)], []), "good", "g has 5 events to read"),
        (
            ("active", 5, [lag(1, NOW), lag(5, NOW - timedelta(1), "h")], []),
            "good", "h has 5 events to read",
        ),
        (("active", 5, [lag(5, NOW)], [trouble("no reader")]), "warn", "g: no reader"),
        (
            ("active", 5, [], [trouble("late"), trouble("slow", "h"), trouble("lost", "i", "red")]),
            "bad", "i: lost, and 2 more",
        ),
        (
            ("active", 5, [lag(5, NOW)], [trouble("1 damaged file", None, "red")]),
            "bad", "1 damaged file",
        ),
    ],
)  # fmt: skip
def test_health_says_the_worst_first(given: Any, level: str, words: str) -> None:
    found = health_of(*given)
    assert (found.level, found.words) == (level, words)


def test_activity_shows_the_window_that_fits_the_commits() -> None:
    def window(*minutes: float) -> tuple[float, int]:
        clocks = sorted(NOW - timedelta(minutes=one) for one in minutes)
        found = activity_of(clocks, [1] * len(clocks), NOW)
        return (found.until - found.since) / timedelta(hours=1), sum(found.events)

    assert window(0, 3) == (1, 2)
    assert window(3, 70) == (6, 2)
    assert window(60 * 100) == (168, 1)
    assert window() == (1, 0)
    assert window(*[i / 10 for i in range(1, MOST + 1)])[0] == pytest.approx(1 / 6)
    assert window(*range(1, MOST + 1)) == (1, 59)  # the part of it within an hour


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        (Policy(), "everything"),
        (Policy("age", max_age=7 * 86400), "7 d"),
        (Policy("size", max_bytes=10**9), "1 GB"),
        (Policy("age", 3600, 86400), "1 d at most, 1 h at least"),
        (Policy("consumed"), "until released"),
        (
            Policy("consumed", 86400, None, None, 10**9),
            "until released, 1 GB at most, 1 d at least",
        ),
    ],
)
def test_retention_is_said_in_a_few_words(policy: Policy, said: str) -> None:
    assert policy.in_short == said
