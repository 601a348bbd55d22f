"""When a benchmark's figure is within its limit, and when its runs are repeated."""

import gc
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.figure import Figure


@pytest.fixture(autouse=True)
def little_to_collect() -> Iterator[None]:
    """Let garbage be collected before each run as always, but not looked for in all of pytest."""
    gc.freeze()
    yield
    gc.unfreeze()


def line_of(
    capsys: pytest.CaptureFixture[str], ratios: list[float], limit: float | None
) -> dict[str, Any]:
    """The line of a figure of three pairs a run, whose pairs have these ratios, and its verdict."""
    left = iter(ratios)
    figure = Figure(
        "it", "something", lambda: next(left), lambda: 1.0, limit=limit, runs=3, warm_up=0
    )
    ok = figure.measure(time.monotonic())
    line: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert line["ok"] == ok
    assert next(left, None) is None, "not all of the pairs were run"
    return line


def test_the_median_decides(capsys: pytest.CaptureFixture[str]) -> None:
    line = line_of(capsys, [0.9, 1.1, 5.0], 1.2)
    assert (line["ok"], line["ratio"], line["best"], line["runs"]) == (True, 1.1, 0.9, 3)
    assert "repeated" not in line


def test_pairs_that_are_all_beyond_the_limit_are_not_run_again(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = line_of(capsys, [1.3, 1.4, 1.5], 1.2)
    assert (line["ok"], line["runs"]) == (False, 3)


def test_a_run_that_is_too_noisy_is_repeated_and_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = line_of(capsys, [1.0, 1.3, 1.4, 1.0, 1.1, 1.1], 1.2)
    assert (line["ok"], line["ratio"], line["runs"]) == (True, 1.1, 6)
    assert line["repeated"].startswith("1 time")


def test_a_run_is_repeated_twice_at_most(capsys: pytest.CaptureFixture[str]) -> None:
    line = line_of(capsys, [1.0, 1.3, 1.4] * 3, 1.2)
    assert (line["ok"], line["ratio"], line["runs"]) == (False, 1.3, 9)
    assert line["repeated"].startswith("2 time")


def test_without_a_limit_there_is_nothing_to_decide(capsys: pytest.CaptureFixture[str]) -> None:
    line = line_of(capsys, [1.0, 30.0, 40.0], None)
    assert (line["ok"], line["runs"]) == (True, 3)


def test_the_line_says_what_is_known_once_the_pairs_have_run(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said: dict[str, str] = {}

    def ours() -> float:
        said["jvm"] = "-Xmx2g"
        return 1.0

    Figure("it", "something", ours, lambda: 1.0, limit=None).measure(time.monotonic(), said)
    assert json.loads(capsys.readouterr().out)["jvm"] == "-Xmx2g"


def test_the_line_has_the_ratio_of_processor_time_also_of_processes_that_have_ended(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def ours() -> None:
        subprocess.run([sys.executable, "-c", "sum(range(40_000_000))"], check=True)

    def reference() -> None:  # for many hundredths of a second, in which processor time is counted
        sum(range(8_000_000))

    figure = Figure("it", "something", ours, reference, limit=None, runs=1, warm_up=0)
    figure.measure(time.monotonic())
    assert json.loads(capsys.readouterr().out)["processor"] > 2
