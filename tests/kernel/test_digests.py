"""Digests with pyarrow: the same number whatever files events lie in."""

import re
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from tests.digests import TYPES, rows_of_every_type
from weir.kernel.row_hash import row_hashes
from weir.model.digest import digest, signed
from weir.model.schema import SEQ


def sum_of_hashes(table: pa.Table, columns: list[str]) -> int:
    names = sorted(set(columns) & set(table.column_names))
    return signed(sum(int(row_hashes(one, names).sum()) for one in table.to_batches()))


def ranked(table: pa.Table, first: int = 0) -> pa.Table:
    ranks = pa.array(range(first, first + len(table)), pa.int64())
    return table.append_column(SEQ, ranks)


@pytest.mark.random
def test_the_digest_does_not_depend_on_how_rows_lie_in_tables() -> None:
    for case in range(cases(24)):
        random = random_for("partition", case)
        whole = ranked(rows_of_every_type(random, 60))
        names = random.sample(sorted(TYPES), random.randint(1, len(TYPES)))
        expected = sum_of_hashes(whole.select([SEQ, *names]), names)
        order = random.sample(range(len(whole)), len(whole))
        places = sorted(random.sample(range(1, len(whole)), random.randint(0, 5)))
        parts = np.split(np.array(order), places)
        sums = [sum_of_hashes(whole.take(pa.array(part)), names) for part in parts]
        assert signed(sum(sums)) == expected
        assert digest([(7, sum(sums))]) == signed(sum(digest([(7, one)]) for one in sums))


@pytest.mark.random
def test_the_hash_of_a_row_changes_with_each_of_its_values() -> None:
    random = random_for("values")
    rows, others = (rows_of_every_type(random, 200) for _ in range(2))
    names = sorted(TYPES)
    before = row_hashes(ranked(rows).to_batches()[0], names)
    assert len(set(before.tolist())) == len(before)
    for i, name in enumerate(rows.column_names):
        changed = rows.set_column(i, name, others[name])
        after = row_hashes(ranked(changed).to_batches()[0], names)
        # Spark takes -0.0 for 0.0, and any NaN for the same.
        same = [
            _alike(a) == _alike(b)
            for a, b in zip(rows[name].to_pylist(), others[name].to_pylist(), strict=True)
        ]
        assert (before == after).tolist() == same, name


def _alike(value: object) -> str:
    return re.sub(r"-0\.0\b", "0.0", repr(value))  # not the beginning of -0.0038


def test_a_column_that_is_null_counts_as_one_that_is_not_there() -> None:
    rows = ranked(pa.table({"a": [1, 2], "b": pa.array([None, None], pa.string())}))
    assert sum_of_hashes(rows, ["a", "b"]) == sum_of_hashes(rows.drop_columns(["b"]), ["a", "b"])
    moved = ranked(pa.table({"a": pa.array([None, 1]), "b": pa.array([1, None])}))
    other = ranked(pa.table({"b": pa.array([None, 1]), "a": pa.array([1, None])}))
    assert sum_of_hashes(moved, ["a", "b"]) != sum_of_hashes(other, ["a", "b"])


def test_the_hash_of_rows_of_every_type_is_what_spark_says() -> None:
    rows = rows_of_every_type(Random("row hash"), 300)
    ranks = pa.array(np.arange(300) * 8_589_934_592 + 1)
    [batch] = rows.append_column(SEQ, ranks).combine_chunks().to_batches()
    # The sum of Spark's own xxhash64 (semantics 18.1): digests that are recorded stay as they are.
    assert signed(int(row_hashes(batch, sorted(TYPES)).sum())) == -6001915899787610158
