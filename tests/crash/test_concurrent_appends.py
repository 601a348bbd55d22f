"""Appends at the same time: nothing is lost, nothing is there twice, the order per key holds."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.crash.appends import ROWS, append_round
from tests.crash.jobs import ROOT, process, wait_for
from tests.spark.installation import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.model.names import StreamName

ROUNDS = 6


@pytest.mark.release
def test_two_applications_that_append_to_one_stream_lose_and_double_nothing(
    weir: Installation, config: Path
) -> None:
    stream = weir.create(segments=5)
    starts = weir.settings.state
    script = str(ROOT / "tests/crash/appends.py")
    with process([sys.executable, script, "other", str(ROUNDS), str(starts)], config) as other:
        wait_for("the other application", lambda: "READY" in other.said)
        for number in range(ROUNDS):
            (starts / f"round {number}").touch()
            append_round(weir.appender, weir.spark, "this", number)
            if number == ROUNDS // 2:
                weir.scale(stream, ["2.0"], parts=3)  # whichever of them is in the middle of it
        assert other.wait() == 0
    facts = weir.check(stream)
    rows = Counter(zip(facts["writer"], facts["round"], facts["n"], strict=True))
    assert rows == Counter(
        (writer, number, n) for writer in ("this", "other") for number in range(ROUNDS)
        for n in range(ROWS)
    )  # fmt: skip
    read = weir.read(stream, "segment")
    for _, one in read.groupby(["k", "writer"]):
        assert (one["round"] * ROWS + one["n"]).is_monotonic_increasing
    clocks = facts.groupby(["writer", "round"])["_clock"]
    assert (clocks.nunique() == 1).all(), "an append is one commit"
    assert clocks.first().nunique() == 2 * ROUNDS, "and has a clock of its own"


def staged(weir: Installation, stream: StreamName, number: int) -> list[Staged]:
    """Sixty events of ten keys, written but not committed."""
    opened = weir.appender.begin_frame(stream, "test", f"batch {number}")
    assert isinstance(opened, Attempt)
    rows = [(f"key {n % 10}", number * 1000 + n) for n in range(60)]
    return weir.appender.stage_frame([opened], weir.spark.createDataFrame(rows, "k string, n long"))


def test_two_appends_that_began_before_a_split_lose_nothing_and_keep_order(
    weir: Installation,
) -> None:
    stream = weir.create(segments=2)
    weir.append(stream, [(f"key {n % 10}", n) for n in range(60)], "batch 0")
    one, other = staged(weir, stream, 1), staged(weir, stream, 2)
    weir.scale(stream, ["0.0"], parts=2)
    weir.append(stream, [(f"key {n % 10}", 3000 + n) for n in range(60)], "batch 3")
    assert weir.appender.commit(one).rolled
    weir.appender.commit(other)
    weir.append(stream, [(f"key {n % 10}", 4000 + n) for n in range(60)], "batch 4")
    facts = weir.check(stream)
    assert len(facts) == 5 * 60
    for _, events in facts.groupby("k"):
        batches = (events["n"] // 1000).drop_duplicates().tolist()
        assert batches == [0, 3, 1, 2, 4], "in the order of the commits, none of them torn"
