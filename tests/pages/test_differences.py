"""Rows of an old and a new output, compared by content and by key: as a small model compares them,
whatever their types are."""

import io
import math
import os
from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import cases
from weir.errors import InvalidInput
from weir.pages import differences
from weir.pages.differences import Compared, File, NoPlaces, columns_of, compare


def file(table: pa.Table, **folders: Any) -> File:
    """A file with the rows of a table, of few rows in each row group."""
    kept = io.BytesIO()
    pq.write_table(table, kept, row_group_size=3)
    opened = partial(pa.BufferReader, kept.getvalue())
    return File(opened, {name: pa.scalar(one) for name, one in folders.items()})


def compared(old: pa.Table, new: pa.Table, **how: Any) -> Compared:
    before, now = [file(old)], [file(new)]
    return compare(before, now, columns_of(before, now), **how)


def counts(found: Compared) -> tuple[int, int, int, int]:
    return found.same, found.changed, found.only_old, found.only_new


def plain(value: Any) -> Any:
    """A value as the model compares it: numbers by what they are, NaN by its name."""
    if isinstance(value, float) and math.isnan(value):
        return "nan"
    if isinstance(value, float):
        return Decimal(value) + 0
    if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
        return Decimal(value) + 0
    if isinstance(value, dict):
        return tuple(sorted((name, plain(one)) for name, one in value.items()))
    return tuple(map(plain, value)) if isinstance(value, (list, tuple)) else value


def model(
    old: Sequence[dict[str, Any]], new: Sequence[dict[str, Any]], names: list[str], key: list[str]
) -> tuple[int, int, int, int]:
    """Count by a bag of each side what `compare` counts by hashes."""
    before, now = (
        Counter(tuple(plain(row[name]) for name in names) for row in rows) for rows in (old, new)
    )
    gone, come = before - now, now - before
    same, changed = (before & now).total(), 0
    if key:
        places = [names.index(one) for one in key]
        one, other = (
            Counter(tuple(row[i] for i in places) for row in bag.elements()) for bag in (gone, come)
        )
        changed = (one & other).total()
    return same, changed, gone.total() - changed, come.total() - changed


_NESTED = pa.struct([("a", pa.list_(pa.float64())), ("b", pa.decimal128(6, 3))])
_OTHER = pa.struct([("b", pa.decimal128(20, 5)), ("a", pa.list_(pa.float32()))])
_SOME = st.sampled_from([0, 1, 2, -1, None])
_FLOATS = st.sampled_from([0.0, -0.0, 1.5, math.nan, math.inf, None])
_DECIMALS = st.sampled_from([Decimal("0"), Decimal("1.5"), Decimal("-2.25"), None])


_COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    "k": st.integers(0, 3), "n": _SOME, "f": _FLOATS, "d": _DECIMALS,
    "t": st.sampled_from(["", "a", None]),
    "s": st.one_of(st.none(), st.fixed_dictionaries(
        {"a": st.one_of(st.none(), st.lists(_FLOATS, max_size=2)), "b": _DECIMALS}
    )),
}  # fmt: skip


@st.composite
def sides(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Draw rows of two outputs, most of which are alike but for a column."""
    few = draw(st.lists(st.fixed_dictionaries(_COLUMNS), min_size=1, max_size=3))
    both = [draw(st.lists(st.sampled_from(few), max_size=8)) for _ in range(2)]
    for row in range(len(both[1])):
        if draw(st.booleans()):
            name = draw(st.sampled_from(sorted(_COLUMNS)))
            both[1][row] = {**both[1][row], name: draw(_COLUMNS[name])}
    return both[0], both[1]


@settings(max_examples=cases(300))
@given(both=sides(), by_key=st.booleans())
def test_rows_are_counted_as_a_bag_of_values_counts_them(
    both: tuple[list[dict[str, Any]], list[dict[str, Any]]], by_key: bool
) -> None:
    old, new = both
    kinds = {"k": pa.int64(), "n": pa.int32(), "f": pa.float64(), "d": pa.decimal128(10, 2),
             "t": pa.string(), "s": _NESTED}  # fmt: skip
    others = {"only": pa.int64(), "s": _OTHER, "t": pa.large_string(), "d": pa.decimal128(38, 9),
              "f": pa.float32(), "n": pa.int64(), "k": pa.int8()}  # fmt: skip
    tables = [
        pa.table({n: pa.array([row.get(n) for row in of], kind) for n, kind in types.items()})
        for of, types in ((old, kinds), (new, others))
    ]
    key = ["k", "t"] if by_key else []
    found = compared(*tables, key=key, most=100)
    assert counts(found) == model(old, new, list(kinds), key)
    assert [one.name for one in found.columns] == list(others)
    for row in found.rows:
        if row.old is not None and row.new is not None:
            pair = [(name, row.old[name], row.new[name]) for name in kinds]
            assert set(row.changed) == {n for n, a, b in pair if plain(a) != plain(b)}
            assert all(plain(row.old[name]) == plain(row.new[name]) for name in key)
            assert row.changed
    assert Counter((r.old is None, r.new is None) for r in found.rows) == Counter({
        kind: count for kind, count in
        (((False, False), found.changed), ((False, True), found.only_old),
         ((True, False), found.only_new)) if count
    })  # fmt: skip


def test_a_column_that_one_side_lacks_is_not_a_column_of_nulls() -> None:
    found = compared(pa.table({"a": [1], "b": pa.array([None], pa.int64())}), pa.table({"a": [1]}))
    assert counts(found) == (1, 0, 0, 0)
    [one] = [one for one in found.columns if one.name == "b"]
    assert (one.old, one.new, one.kind) == (pa.int64(), None, None)


def test_types_that_can_not_be_compared_are_left_out() -> None:
    old = pa.table({"a": [1, 2], "b": ["x", "y"], "n": [2**60, 1]})
    new = pa.table({"a": [1, 2], "b": [7, 8], "n": [2.0**60, 1.0]})
    found = compared(old, new)
    assert counts(found) == (2, 0, 0, 0)
    assert [one.name for one in found.columns if one.kind] == ["a"]
    with pytest.raises(InvalidInput) as refused:
        compared(old, new, key=["b"])
    assert refused.value.code == "column_unknown"


def test_only_so_many_rows_of_each_kind_are_shown_and_all_are_counted() -> None:
    old = pa.table({"k": range(30), "n": [0] * 30})
    new = pa.table({"k": range(10, 40), "n": [0] * 10 + [1] * 20})
    found = compared(old, new, key=["k"], most=4)
    assert counts(found) == (10, 10, 10, 10)
    kinds = Counter((row.old is None, row.new is None) for row in found.rows)
    assert set(kinds.values()) == {4}
    assert found.rows[0] == ({"k": 20, "n": 0}, {"k": 20, "n": 1}, ["n"])


def test_rows_that_differ_are_read_again_within_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([1.0, 1.0, 9.0])  # when each of two files is read, and the first again
    monkeypatch.setattr(differences, "time", SimpleNamespace(monotonic=lambda: next(times)))
    with pytest.raises(InvalidInput) as refused:
        compared(pa.table({"n": [1]}), pa.table({"n": [2]}), until=5.0)
    assert refused.value.code == "answer_too_large"


def test_rows_of_other_events_do_not_count() -> None:
    old = pa.table({"_segment": [1, 1, 2], "_offset": [5, 6, 5], "n": [1, 2, 3]})
    new = pa.table({"_segment": [1, 2, 1], "_offset": [5, 5, 5], "n": [1, 4, 9]})
    how: dict[str, Any] = {"key": ["_segment", "_offset"], "within": {1: [(0, 6)], 2: [(5, 6)]}}
    found = compared(old, new, **how)
    assert counts(found) == (1, 1, 0, 1), "one event may make two rows"
    nowhere = pa.table({"_segment": [1, None], "_offset": [5, 6], "n": [1, 2]})
    with pytest.raises(NoPlaces):
        compared(old, nowhere, **how)


def test_values_in_the_names_of_folders_are_columns() -> None:
    rows = pa.table({"n": [1, 2]})
    old, new = [file(rows, day="mon")], [file(rows, day="mon"), file(rows, day="tue")]
    found = compare(old, new, columns_of(old, new))
    assert counts(found) == (2, 0, 0, 2)
    assert found.rows[0].new == {"n": 1, "day": "tue"}


def test_no_file_stays_open_and_one_that_was_replaced_is_not_taken_for_what_it_was(
    tmp_path: Path,
) -> None:
    tables = [pa.table({"n": [number]}) for number in range(50)]
    for i, table in enumerate(tables):
        pq.write_table(table, tmp_path / f"{i}.parquet")
    files = [File(partial(pa.OSFile, str(tmp_path / f"{i}.parquet")), {}) for i in range(50)]
    before = len(os.listdir("/proc/self/fd"))
    assert counts(compare(files, files, columns_of(files, files))) == (50, 0, 0, 0)
    assert len(os.listdir("/proc/self/fd")) == before
    pq.write_table(pa.table({"n": [1, 2]}), tmp_path / "7.parquet")
    with pytest.raises(OSError, match="replaced"):
        compare(files, files, columns_of(files, files))


def test_a_column_that_files_of_one_side_lack_is_null_there() -> None:
    old = [file(pa.table({"a": [1, 2], "b": [None, 3]}))]
    new = [file(pa.table({"a": [1]})), file(pa.table({"a": [2], "b": [3]}))]
    assert counts(compare(old, new, columns_of(old, new))) == (2, 0, 0, 0)
