"""DataFrames as people have them: names of columns, types, keys within structs, and no rows.
tests/inputs/test_appended_files.py has the same of files."""

import pytest

from tests.raises import raises
from tests.spark.installation import PLACE, Installation

NAMES = ["a.b", "with space", "back`tick", "UPPER", "Straße", "a,b;c{}()=", "select", "x\ny",
         "quote\"'d", "metadata", "segment"]  # fmt: skip


@pytest.mark.release
def test_columns_may_have_any_name_but_weirs_own(weir: Installation) -> None:
    stream = weir.create(key="`a.b`", segments=3)
    rows = [tuple(f"{name} {i}" for name in NAMES) for i in range(5)]
    weir.append(stream, weir.spark.createDataFrame(rows, NAMES))
    facts = weir.check(stream, key="a.b", read=True)
    assert sorted(map(tuple, facts[NAMES].to_numpy().tolist())) == rows
    for name in ("_weir_seq", "_WEIR_x", "_Offset"):
        with raises(f"column_name_reserved '{name}'"):
            weir.append(stream, weir.spark.createDataFrame([("a", 1)], ["a.b", name]))


@pytest.mark.release
def test_columns_of_types_that_spark_cannot_write_are_refused_by_name(weir: Installation) -> None:
    stream = weir.create()
    for value, kind in (("TIME '10:00:00'", "time(6)"), ("make_interval(1)", "interval")):
        for column in (value, f"array({value})"):
            frame = weir.spark.range(1).selectExpr("'a' AS k", f"{column} AS z")
            with raises(f"column_type_unsupported 'z' {kind} string"):
                weir.append(stream, frame)


@pytest.mark.release
def test_routing_key_may_be_nested_and_rank_is_found_beside_nested_columns(
    weir: Installation,
) -> None:
    # A field inside a struct may be called anything, even what Weir calls its own column.
    stream = weir.create(key="who.name", segments=4)
    rows = weir.spark.range(100).selectExpr(
        "named_struct('_weir_seq', -id, 'name', concat('key ', id % 9)) AS who", "id AS n"
    )
    weir.append(stream, rows.repartition(3))
    facts = weir.facts(stream)
    assert sorted(facts["n"]) == list(range(100))
    assert (facts.groupby("_segment")["_weir_seq"].diff().dropna() > 0).all()


@pytest.mark.release
def test_frames_without_rows_are_appends_of_nothing(weir: Installation) -> None:
    stream = weir.create(segments=2)
    none = weir.spark.range(9).selectExpr("'x' k", "id n").where("n < 0")
    for done in (weir.append(stream, []), weir.append(stream, none)):
        assert (done.events, done.files) == (0, 0)
    assert weir.frame(stream).columns == ["k", "n", *PLACE]
    weir.append(stream, [("b", 2)])
    assert len(weir.check(stream, read=True)) == 1
