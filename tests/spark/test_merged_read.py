"""Several streams in one order, and reads between two times, on real files."""

from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

import weir.spark
from tests.chance import random_for
from tests.raises import raises
from tests.spark.installation import Installation, to_pandas
from weir.model.key_space import KeyRange
from weir.model.names import StreamName, stream_name
from weir.spark.consumers.reader import Reader

# The keys have very unequal shares, and so have the segments.
BOUNDARIES = [0.01, 0.03, 0.06, 0.1, 0.15, 0.22, 0.3, 0.44, 0.5, 0.53, 0.6, 0.68, 0.79, 0.9, 0.98]


def read(weir_: Installation, streams: str | Sequence[str], **how: Any) -> DataFrame:
    """As a program reads."""
    return weir.spark.read(streams, spark=weir_.spark, settings=weir_.settings, **how)


def now(weir_: Installation) -> datetime:
    at: datetime = weir_.value("SELECT clock_timestamp()")
    return at


def merged_facts(weir_: Installation, *streams: StreamName) -> pd.DataFrame:
    """What a merged read must give, by the metadata and the files alone."""
    parts = [weir_.facts(stream).assign(_stream=str(stream)) for stream in streams]
    return pd.concat(parts).sort_values(["_clock", "_stream", "_weir_seq"], ignore_index=True)


def places(frame: pd.DataFrame) -> list[tuple[Any, ...]]:
    names = ["_stream", "_segment", "_offset", "_clock", "n"]
    return list(frame[names].itertuples(index=False, name=None))


def filled(weir_: Installation, count: int = 60) -> tuple[StreamName, StreamName, list[datetime]]:
    """Two streams, written in turn; one has 16 unequal segments, which are scaled in the middle."""
    wide, narrow = weir_.create("s/wide", segments=1), weir_.create("s/narrow", segments=2)
    bounds = pairwise([0.0, *BOUNDARIES, 1.0])
    weir_.scale(wide, ["0.0"], ranges=[KeyRange(*one) for one in bounds])
    chance = random_for("merged")
    times = [now(weir_)]
    for turn in range(4):
        for stream in (wide, narrow, wide) if turn % 2 else (narrow, wide):
            rows = [(f"key {int(chance.paretovariate(0.4)) % 500}", i) for i in range(count)]
            frame = weir_.spark.createDataFrame(rows, "k string, n long").coalesce(2)
            weir_.append(stream, frame)
        if turn == 1:
            weir_.scale(wide, [weir_.value(
                """SELECT segment FROM segments WHERE stream = 's/wide' AND active
                ORDER BY events DESC LIMIT 1""")], parts=2)  # fmt: skip
            weir_.scale(narrow, ["0.0", "1.0"], parts=1)
        times.append(now(weir_))
    return wide, narrow, times


def test_two_streams_are_read_as_one_in_write_order_over_scales(weir: Installation) -> None:
    wide, narrow, times = filled(weir)
    wanted = merged_facts(weir, wide, narrow)
    names = [str(wide), str(narrow)]
    frame = read(weir, names, order="stream")
    assert frame.columns == ["k", "n", "_stream", "_segment", "_offset", "_clock"]
    assert "Exchange" not in frame._jdf.queryExecution().executedPlan().toString()
    assert frame.select(F.spark_partition_id()).distinct().count() > 1
    first = to_pandas(frame)
    assert places(first) == places(wanted)
    weir.append(wide, [("key 1", 1)])
    later = to_pandas(read(weir, names[::-1]))
    assert places(later[:-1]) == places(first), "a later read begins with the same events"
    part = to_pandas(read(weir, names, since=times[1], until=times[2]))
    of_turn = wanted[wanted["_clock"].isin(part["_clock"].unique())]
    assert places(part) == places(of_turn)
    assert part["_clock"].nunique() == 3, "the second turn wrote three times"


@pytest.mark.release
def test_a_batch_of_two_streams_gives_them_in_write_order(weir: Installation) -> None:
    wide, narrow, _ = filled(weir)
    group = weir.group(wide, narrow)
    wanted = merged_facts(weir, wide, narrow)
    delivered: list[tuple[Any, ...]] = []
    with Reader(weir.spark, group, order="stream", installation=weir.opened) as reader:
        for batch in reader:
            delivered += places(to_pandas(batch.merged()))
            assert places(to_pandas(batch.merged())) == delivered[-batch.size :]
            batch.commit()
    assert sorted(delivered) == sorted(places(wanted))
    for stream in (wide, narrow):
        of_stream = [place for place in delivered if place[0] == str(stream)]
        assert of_stream == places(wanted[wanted["_stream"] == str(stream)])


@pytest.mark.release
def test_columns_of_a_merged_read_are_those_in_common_or_the_named_ones(
    weir: Installation,
) -> None:
    one, two = weir.create("s/one", segments=1), weir.create("s/two", segments=1)
    never = weir.create("s/never", segments=1)
    schema = "k string, n long, x double"
    weir.append(one, weir.spark.createDataFrame([("a", 1, 0.5)], schema))
    weir.append(two, weir.spark.createDataFrame([("b", 2, "y")], "k string, n long, x string"))
    weir.append(
        two, weir.spark.createDataFrame([("c", 3, "z", 7)], "k string, n long, x string, m int")
    )
    names = [str(one), str(two), str(never)]
    assert [(r.k, r.n) for r in read(weir, names).collect()] == [("a", 1), ("b", 2), ("c", 3)]
    assert "x" not in read(weir, names).columns
    named = read(weir, names, columns=["m", "K"]).select("m", "K", "_stream").collect()
    assert [tuple(r) for r in named] == [
        (None, "a", "s/one"), (None, "b", "s/two"), (7, "c", "s/two")
    ]  # fmt: skip
    with raises("column_type_differs 'x'"):
        read(weir, names, columns=["x"])
    with raises("column_unknown 'y'"):
        read(weir, names, columns=["y"])
    with raises("argument_invalid 'segment'"):
        read(weir, names, order="segment")
    with raises("time_in_future"):
        read(weir, names, since="9000-01-01")
    assert read(weir, [str(never)]).columns == ["_stream", "_segment", "_offset", "_clock"]


@pytest.mark.release
@pytest.mark.parametrize("order", ["segment", "stream", "none"])
def test_a_stream_is_read_between_two_times_and_replayed_in_order(
    weir: Installation, order: str
) -> None:
    wide, _, times = filled(weir)
    facts = weir.facts(wide)
    hour = {"since": str(times[1]), "until": times[3].isoformat()}
    frame = read(weir, str(wide), order=order, **hour)
    first = to_pandas(frame)
    clocks = [int(at.timestamp() * 1_000_000) for at in times]
    inside = facts[(facts["_clock"] > clocks[1]) & (facts["_clock"] <= clocks[3])]
    keys = ["_segment", "_offset", "n"]
    assert sorted(first[keys].itertuples(index=False, name=None)) == sorted(
        inside[keys].itertuples(index=False, name=None)
    )
    weir.append(wide, [("key 1", 1)])
    again = to_pandas(read(weir, str(wide), order=order, **hour))
    pd.testing.assert_frame_equal(again, first)
    if order == "stream":
        replayed = stream_name("s/replayed")
        weir.create(str(replayed), segments=3)
        weir.append(replayed, frame.drop("_segment", "_offset", "_clock"))
        written = to_pandas(read(weir, str(replayed), order="stream"))
        assert written["n"].tolist() == first["n"].tolist(), "in the order of the first stream"
        assert read(weir, str(replayed), columns=["n"]).columns[:1] == ["n"]
