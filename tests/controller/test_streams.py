"""Creating streams: what is asked for, and what is refused."""

from itertools import pairwise

import pytest

from tests.raises import raises
from tests.world.streams import FIELDS, Lane, rows, unique
from weir.controller.locks import lock_streams
from weir.controller.streams import create_stream, schema_of
from weir.database.connection import Database
from weir.model.names import StreamName, stream_name
from weir.model.schema import Field


@pytest.mark.parametrize("segments", [1, 2, 49, 98, 400])
def test_the_segments_of_a_new_stream_tile_the_key_space(
    shared_database: Database, segments: int
) -> None:
    lane = Lane.made(shared_database, segments=segments)
    found = lane.rows("SELECT * FROM active_segments_at(:s, 0) ORDER BY key_low")
    assert [row.segment_id for row in found] == list(range(segments))
    assert (found[0].key_low, found[-1].key_high) == (0.0, 1.0)
    assert all(one.key_high == other.key_low for one, other in pairwise(found))
    assert lane.head() == lane.tail() == {f"{i}.0": 0 for i in range(segments)}
    [epoch] = lane.epochs()
    clock = lane.value("SELECT last_clock FROM stream WHERE stream_id = :s")
    assert (epoch.epoch, epoch.reference_epoch, epoch.created_at) == (0, 0, clock)


@pytest.mark.parametrize(
    "name",
    [
        "", "flights", "nyc/", "/flights", "nyc/flights/x", "NYC/flights", "nyc/fl ights",
        "nyc/../x", "nyc/fl'ights", "-nyc/x", "nyc/_x", "nyc/flights\n", f"{'s' * 64}/x",
        "nyc/x.rejected",
    ],
)  # fmt: skip
def test_names_that_break_the_rule_are_refused(name: str) -> None:
    with raises("name_invalid reserved" if "x.rejected" in name else "name_invalid stream"):
        stream_name(name, reserved=False)


def test_the_database_itself_refuses_a_bad_name(shared_database: Database) -> None:
    for name in ("../x", "a'b", "x\n"):
        with pytest.raises(Exception, match="stream_name_check"):
            create_stream(
                shared_database, StreamName("test", name), routing_key="k", segments=1,
                request_id=unique("create"),
            )  # fmt: skip


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"segments": 0}, "argument_invalid segments 0"),
        ({"segments": 10_001}, "argument_invalid segments 10001 10000"),
        ({"on_missing_key": "ignore"}, "argument_invalid on_missing_key 'ignore'"),
        ({"on_bad_rows": "spread"}, "argument_invalid on_bad_rows 'spread'"),
        (
            {"fields": [{"name": "_Offset", "type": "long", "nullable": True}]},
            "columns_invalid column",
        ),
        ({"fields": [*FIELDS, *FIELDS]}, "columns_invalid twice"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_is_created(
    shared_database: Database, options: dict[str, object], says: str
) -> None:
    name = stream_name(f"test/{unique('stream')}")
    given = {"routing_key": "k", "segments": 2, "request_id": unique("create"), **options}
    with raises(says):
        create_stream(shared_database, name, **given)  # type: ignore[arg-type]
    assert rows(shared_database, "SELECT 1 FROM stream WHERE name = :n", n=name.name) == []


def test_declared_columns_are_the_first_schema(shared_database: Database) -> None:
    def schema(lane: Lane) -> list[Field] | None:
        return lane.database.transaction(
            lambda c: schema_of(c, lock_streams(c, ids=[lane.stream_id])[0])
        )

    declared, open_ = Lane.made(shared_database, fields=FIELDS), Lane.made(shared_database)
    assert schema(declared) == FIELDS
    assert schema(open_) is None
    open_.append({"0.0": 1})
    assert schema(open_) == FIELDS
