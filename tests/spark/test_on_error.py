"""A consumer whose function fails: for the events it reads, or for something else."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame

from tests.committed_folders import committed_folders
from tests.spark.installation import Installation
from weir.model.names import StreamName
from weir.spark.failures.causes import caused_by_events, sentence

ROWS = 24


@pytest.fixture
def stream(weir: Installation) -> StreamName:
    """Events in two segments, and a stream for results."""
    stream = weir.create(segments=2)
    weir.create("s/out", segments=2)
    weir.put(stream, [(f"key {n % 5}", n) for n in range(ROWS)])
    return stream


def parquet_rows(weir: Installation) -> list[int]:
    root = Path(weir.settings.output_roots[0])
    folders = [str(root / f) for f in committed_folders(weir.database, "readers", "out")]
    return sorted(row.n for row in weir.spark.read.parquet(*folders).collect()) if folders else []


def place(weir: Installation, stream: StreamName, n: int) -> tuple[str, int, list[int]]:
    """Where an event is, and what a batch reads before it."""
    facts = weir.facts(stream)
    [at] = facts.index[facts["n"] == n]
    return f"{facts['_segment'][at]}.0", int(facts["_offset"][at]), list(facts["n"][:at])


def test_quarantine_sets_the_failing_events_aside_and_goes_on_in_the_order_of_each_key(
    weir: Installation, stream: StreamName
) -> None:
    group = weir.group(stream)
    seen: list[tuple[str, int]] = []

    def picky(events: DataFrame) -> DataFrame:
        rows = events.collect()
        for row in rows:
            if row.n in (7, 20):
                raise ValueError(f"I don't like {row.n}")
        seen.extend((row.k, row.n) for row in rows)
        return events.select("k", "n")

    report = weir.consumer(group, picky, "parquet:out", on_error="quarantine").run()
    good = [n for n in range(ROWS) if n not in (7, 20)]
    assert (report["events"], report["rejected"]) == (ROWS, 2)
    assert parquet_rows(weir) == sorted(n for _, n in seen) == good
    for key in {key for key, _ in seen}:
        of_key = [n for k, n in seen if k == key]
        assert of_key == sorted(of_key)
    rejected = weir.check(stream.rejected, key=None).sort_values("row")
    assert [tuple(row) for row in rejected[["row", "source", "place", "reason"]].values] == [
        (f'{{"k":"key {n % 5}","n":{n}}}', f"group readers, segment {place(weir, stream, n)[0]}",
         place(weir, stream, n)[1], f"ValueError: I don't like {n}")
        for n in (20, 7)
    ]  # fmt: skip
    assert weir.value("SELECT sum(rejected) FROM reader_batch WHERE state = 'committed'") == 2
    assert weir.value("SELECT unread_events FROM lag") == 0


ERRORS: list[tuple[str, bool, str]] = [
    ("cast(concat('a', id) AS int)", True, "[CAST_INVALID_INPUT]"),
    ("1 / (id - 1)", True, "[DIVIDE_BY_ZERO]"),
    ("raise_error('mine')", True, "[USER_RAISED_EXCEPTION] mine"),
    ("array(1)[id]", True, "[INVALID_ARRAY_INDEX]"),
    ("java_method('java.lang.System', 'exit', 'x')", False, ""),
]


def test_sparks_errors_are_told_apart(weir: Installation, tmp_path: Path) -> None:
    for expression, events, said in ERRORS:
        with pytest.raises(Exception, match=r"\S") as failed:
            weir.spark.range(3).selectExpr(f"{expression} AS x").collect()
        assert isinstance(failed.value, Exception)
        assert caused_by_events(failed.value) is events, expression
        assert sentence(failed.value).startswith(said)
    with pytest.raises(AnalysisException) as mistaken:
        weir.spark.range(3).select("nothing")
    assert not caused_by_events(mistaken.value)
    # A file that is gone, or damaged, is no fault of the events in it.
    weir.spark.range(3).write.parquet(str(tmp_path / "x"))
    frame = weir.spark.read.parquet(str(tmp_path / "x"))
    for path in (tmp_path / "x").glob("*.parquet"):
        path.unlink()
    with pytest.raises(Exception, match="FILE_NOT_EXIST") as failed:
        frame.collect()
    assert not isinstance(failed.value, PySparkException)
    assert not caused_by_events(failed.value)
    error: Any = ValueError("two\nlines")
    assert sentence(error) == "ValueError: two"
    assert sentence(ValueError()) == "ValueError"
