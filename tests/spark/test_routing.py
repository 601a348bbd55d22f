"""Routing: the same segment as any other language would compute, exactly at the boundaries too."""

import math
import time
from itertools import pairwise

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from tests.released import only
from tests.spark.installation import Installation
from tests.spark.xxh64 import position, xxh64
from weir.model.key_space import even_split
from weir.model.segment import Segment, segment_id
from weir.spark.base.routing import routing_steps, with_ordinals

KEYS = [
    "", "a", "ab", "abcd", "abcdefg", "abcdefgh", "abcdefghi", "N14228", "x" * 31, "x" * 32,
    "y" * 33, "z" * 63, "w" * 64, "v" * 1000, "ключ", "鍵", "🔑", "e\u0301", "é", " a ",
    "null", *(f"key {i}" for i in range(500)), *("k" * i for i in range(100)),
]  # fmt: skip


def test_xxh64_of_the_tests_agrees_with_published_values() -> None:
    # From the reference implementation's own documentation and tests.
    assert xxh64(b"", 0) == 0xEF46DB3751D8E999
    assert xxh64(b"a", 0) == 0xD24EC4F1A98C6E5B
    assert xxh64(b"abc", 0) == 0x44BC2CF5AD770999
    assert xxh64(b"Nobody inspects the spammish repetition", 0) == 0xFBCEA83C8A378BF1


def test_position_of_a_key_agrees_with_an_independent_xxh64(spark: SparkSession) -> None:
    frame = spark.createDataFrame([(key,) for key in KEYS], "k string")
    found = frame.select("k", routing_steps(F.col("k")).alias("steps")).collect()
    assert {row.k: row.steps / 2**53 for row in found} == {key: position(key) for key in KEYS}
    assert all(0 <= row.steps < 2**53 for row in found)


def segments(count: int) -> list[Segment]:
    """So many of about equal range."""
    return [Segment(segment_id(i, 0), r.low, r.high) for i, r in enumerate(even_split(count))]


def boundary_steps(parts: list[Segment]) -> dict[int, int]:
    """Positions (times 2^53) just before, at and just after each boundary: where they belong."""
    wanted = {0: 0, 2**53 - 1: len(parts) - 1}
    for i, part in enumerate(parts[1:], 1):
        first = math.ceil(part.key_low * 2**53)
        for steps in (first - 1, first, first + 1):
            inside = [j for j in (i - 1, i, i + 1) if j < len(parts)
                      and parts[j].key_low <= steps / 2**53 < parts[j].key_high]  # fmt: skip
            (wanted[steps],) = inside
    return wanted


@pytest.mark.parametrize("count", only(129, of=[1, 2, 3, 16, 128, 129, 300, 1000]))
def test_bisection_finds_the_segment_also_at_its_boundaries(
    spark: SparkSession, count: int
) -> None:
    parts = segments(count)
    wanted = boundary_steps(parts)
    frame = spark.createDataFrame([(steps,) for steps in wanted], "steps long")
    found = with_ordinals(frame, "i", "steps", parts).collect()
    assert {row.steps: row.i for row in found} == wanted


def test_unequal_ranges_that_lie_between_two_steps_are_bisected_exactly(
    spark: SparkSession,
) -> None:
    edges = [0.0, 5e-324, 1e-17, 0.1, 0.1 + 2**-54, 1 / 3, 0.5, math.nextafter(1.0, 0.0), 1.0]
    parts = [Segment(segment_id(i, 0), low, high) for i, (low, high) in enumerate(pairwise(edges))]
    steps = {s for edge in edges for s in range(int(edge * 2**53) - 2, int(edge * 2**53) + 3)}
    rows = [(s,) for s in sorted(steps) if 0 <= s < 2**53]
    frame = spark.createDataFrame(rows, "steps long")
    for row in with_ordinals(frame, "i", "steps", parts).collect():
        part = parts[row.i]
        assert part.key_low <= row.steps / 2**53 < part.key_high, (row, part)


@pytest.mark.release
def test_routing_into_many_segments_takes_no_more_than_into_few(spark: SparkSession) -> None:
    def seconds(count: int) -> float:
        parts = segments(count)
        frame = spark.range(0, 2_000_000, 1, 2).select(
            routing_steps(F.col("id").cast("string")).alias("steps")
        )
        routed = with_ordinals(frame, "segment", "steps", parts).agg(F.max("segment"))
        routed.collect()
        begun = time.monotonic()
        routed.collect()
        return time.monotonic() - begun

    few = min(seconds(100) for _ in range(3))
    for count in (1_000, 10_000):
        many = min(seconds(count) for _ in range(3))
        assert many < 3 * few + 1, f"{many:.2f} s into {count} segments, {few:.2f} s into 100"


@pytest.mark.parametrize("count", only(16, of=[1, 16, 300]))
def test_events_of_a_dataframe_lie_where_their_keys_belong(weir: Installation, count: int) -> None:
    stream = weir.create(segments=count)
    frame = weir.spark.createDataFrame([(key, i) for i, key in enumerate(KEYS)], "k string, n long")
    weir.append(stream, frame)
    facts = weir.check(stream)
    assert sorted(facts["n"]) == list(range(len(KEYS)))
