"""Events are found by their routing keys, or by a condition, with the places that readers see."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import weir as library
from tests.chance import random_for
from tests.erasure.world import Erasing
from tests.raises import raises
from tests.spark.installation import Installation
from weir.controller.read_plan import plan_of_stream
from weir.errors import InvalidInput
from weir.spark.reads import matching, native


def places(found: pa.Table) -> dict[int, list[int]]:
    segments = sorted(set(found["_segment"].to_pylist()))
    return {
        segment: sorted(found.filter(pc.equal(found["_segment"], segment))["_offset"].to_pylist())
        for segment in segments
    }


def test_events_are_found_by_key_and_by_condition_where_readers_see_them(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Erasing.made(
        weir.database, weir.settings, random_for("matching"), name="s/found", segments=4
    )
    for _ in range(12):
        made.append()
    made.compact(thorough=True)
    made.erase("k3")
    events = library.read("s/found", settings=weir.settings)
    stream_id, slices, fields = weir.database.snapshot(lambda c: plan_of_stream(c, made.lane.name))
    given = weir.spark, weir.settings.warehouse, stream_id, slices, fields
    opened: list[int] = []
    frame_of = native.frame_of

    def counting(spark, warehouse, stream_id, slices, *more, **how):  # type: ignore[no-untyped-def]
        opened.append(len(slices))
        return frame_of(spark, warehouse, stream_id, slices, *more, **how)

    monkeypatch.setattr(matching, "frame_of", counting)
    of_keys = matching.places_of_keys(*given, "key", ["k1", "k3", "never"])
    wanted = events.filter(pc.is_in(events["key"], pa.array(["k1", "k3"])))
    assert {s: at.tolist() for s, at in of_keys.items()} == places(wanted)
    assert opened[0] < len(slices)  # files of segments that can't have the keys
    found = matching.places_where(*given, "n % 5 = 2 AND key <> 'k1'")
    wanted = events.filter(pc.not_equal(events["key"], "k1"))
    wanted = wanted.filter(pa.array([n % 5 == 2 for n in wanted["n"].to_pylist()]))
    assert {s: at.tolist() for s, at in found.items()} == places(wanted)
    assert matching.places_where(*given, "n < 0") == {}
    with raises("condition_not_boolean"):
        matching.places_where(*given, "n + 1")
    with pytest.raises(InvalidInput) as told:  # it is recorded with the run
        matching.places_where(*given, "length(key || 'subject-0815')")
    assert "length(key || ?)" in str(told.value)
    assert "0815" not in str(told.value)
    with raises("expression_not_allowed java_method"):
        matching.places_where(*given, "java_method('java.lang.System', 'exit') = key")
