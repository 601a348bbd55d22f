"""The key space of a stream over time, as JSON: against the tables, and bounded."""

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database


def asked(client: TestClient, lane: Lane, **given: Any) -> Any:
    answer = client.get(f"/api/streams/{lane.name}/map", params=given)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_scaled_and_truncated_stream_is_drawn_as_the_tables_have_it(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 2)
    group = Group.made(lane)
    lane.append({"0.0": 10, "1.0": 20})
    reader = group.reader()
    reader.commit(reader.must_open(5))
    low, high = lane.scale("0.0", parts=2)
    lane.append({low: 4, "1.0": 6})
    lane.truncate('{"0.0": 10, "1.0": 0}')
    told = asked(client, lane)
    assert not told["aggregated"]
    areas = {one["segment"]: one for one in told["areas"]}
    view = lane.rows(
        "SELECT segment, key_low, key_high, events FROM weir.segments WHERE stream = :n",
        n=str(lane.name),
    )
    assert {(r.segment, r.key_low, r.key_high, r.events) for r in view} == {
        (n, o["key_low"], o["key_high"], o["events"]) for n, o in areas.items()
    }
    for name, one in areas.items():
        came = sum(part["events"] for part in one["parts"])
        assert came == pytest.approx(one["events"], abs=0.1), name
    assert areas["0.0"]["until"] == areas[low]["since"] == areas[high]["since"]
    assert [(one["kind"], one["number"]) for one in told["marks"]] == [("scale", 1)]
    head, position = told["lines"]
    assert (head["reader_group"], position["reader_group"]) == (None, group.name)
    sealed, *_ = head["points"]
    assert (sealed["key_low"], sealed["key_high"]) == (0, 0.5)
    assert sealed["at"] == areas["0.0"]["until"]
    assert head["points"][-1]["at"] == areas["1.0"]["since"]
    assert position["points"][0]["key_low"] == 0
    assert position["points"][-1]["key_high"] == 1


def test_a_part_of_the_time_has_what_came_in_it(client: TestClient, database: Database) -> None:
    lane = Lane.made(database, 1)
    lane.append({"0.0": 10})
    lane.append({"0.0": 7})
    # Not a millisecond before the other: a part begins and ends at a whole microsecond.
    run(database, "UPDATE epoch SET created_at = created_at - 7200000000")
    run(database, "UPDATE time_index SET clock = clock - 3600000000 WHERE start_offset = 0")
    first, second = (
        row.at
        for row in lane.rows(
            "SELECT clock_time(clock) AS at FROM commits_between(:s, 0, 9223372036854775807) "
            "ORDER BY clock"
        )
    )
    told = asked(client, lane, since=first.isoformat(), until=second.isoformat())
    assert sum(part["events"] for part in told["areas"][0]["parts"]) == pytest.approx(7, abs=0.1)
    answer = client.get(f"/api/streams/{lane.name}/map", params={"until": "2001-01-01T00:00:00Z"})
    assert answer.status_code == 400
    assert "has nothing between these times" in answer.json()["error"]["sentence"]


def test_a_group_that_has_read_all_stands_at_the_end(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 2)
    group = Group.made(lane)
    lane.append({"0.0": 3, "1.0": 3})
    group.reader().read_all()
    told = asked(client, lane)
    [point] = told["lines"][1]["points"]
    assert (point["key_low"], point["key_high"], point["at"]) == (0, 1, told["ends"])


def test_an_unchanged_map_is_not_sent_again(client: TestClient, database: Database) -> None:
    lane = Lane.made(database)
    path = f"/api/streams/{lane.name}/map"
    until = asked(client, lane)["until"]
    tag = client.get(path, params={"until": until}).headers["etag"]
    again = client.get(path, params={"until": until}, headers={"If-None-Match": tag})
    assert again.status_code == 304
    assert client.get("/api/streams/no/such/map").status_code == 404
    assert "/api/streams/{scope}/{name}/map" in client.get("/api/openapi.json").json()["paths"]
