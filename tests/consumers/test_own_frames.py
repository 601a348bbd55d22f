"""Whose lines are shown when a function fails, and what is said without a Java."""

import sys
from pathlib import Path

import pytest
from pyspark.errors import PythonException

from tests.raises import raises
from weir.consumers.own_frames import own_frames, place_of
from weir.consumers.user_functions import load_function
from weir.errors import BatchFailed
from weir.spark.base.java import find_java

MINE = """
import json

def check(text):
    return json.loads(text)

def again(text):
    try:
        return check(text)
    except ValueError as error:
        raise KeyError(text) from error

def deep(n):
    return deep(n + 1)
"""
WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/lib/python3.11/site-packages/pyspark/python/lib/pyspark.zip/pyspark/worker.py", line 1, in main
    process()
  File "/home/me/pyspark-jobs/mine.py", line 12, in check
    raise ValueError(
  File "/usr/lib/python3.11/json/decoder.py", line 355, in decode
    raise JSONDecodeError
ValueError: my own mistake
"""  # noqa: E501 - as Spark writes it


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user's module, `own_frames_mine`."""
    path = tmp_path / "own_frames_mine.py"
    path.write_text(MINE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    return path


def test_a_failing_function_shows_its_own_lines_and_those_of_nobody_else(mine: Path) -> None:
    again = load_function("own_frames_mine:again", ["own_frames_mine"])
    with pytest.raises(KeyError) as caught:
        again("{")
    lines = [line for line in own_frames(caught.value) if str(Path(__file__)) not in line]
    shown = "\n".join(lines)
    assert f'File "{mine}", line 5, in check\n    return json.loads(text)' in shown
    assert f'File "{mine}", line 11, in again\n    raise KeyError(text) from error' in shown
    assert "JSONDecodeError" in shown
    assert "decoder.py" not in shown
    deep = load_function("own_frames_mine:deep", ["own_frames_mine"])
    with pytest.raises(RecursionError) as endless:
        deep(0)
    assert len(own_frames(endless.value)) <= 40


def test_what_an_executor_raised_shows_the_lines_of_the_function_there() -> None:
    error = PythonException(WORKER)
    assert own_frames(error) == [
        '  File "/home/me/pyspark-jobs/mine.py", line 12, in check', "    raise ValueError(",
        "ValueError: my own mistake",
    ]  # fmt: skip


def test_an_error_of_others_shows_no_lines() -> None:
    error = BatchFailed("batch_failed", "batch 1 failed.", retryable=False)
    assert (own_frames(error), place_of(error)) == ([], "")


@pytest.mark.parametrize(
    ("text", "line"), [("x = 1\n1/0\n", 2), ("x = (\n", 1), ("\n\nraise ValueError('no')", 3)]
)
def test_a_module_that_fails_is_named_with_its_line(mine: Path, text: str, line: int) -> None:
    mine.write_text(text)
    with raises(f"function_not_loadable {mine} line {line}"):
        load_function("own_frames_mine:check", ["own_frames_mine"])


@pytest.mark.parametrize("said", ["none", "old", "no version"])
def test_without_a_java_one_sentence_says_what_to_install(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    if said != "none":
        (tmp_path / "bin").mkdir()
        version = 'openjdk version \\"1.8.0_292\\"' if said == "old" else "what?"
        java = tmp_path / "bin" / "java"
        java.write_text(f'#!/bin/sh\necho "{version}" >&2\n')
        java.chmod(0o755)
    with raises("dependency_missing install Java 17 JAVA_HOME"):
        find_java()
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    with raises("dependency_missing 'there is no java'".replace("'", "")):
        find_java()
