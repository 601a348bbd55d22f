"""Which format the endings of files say."""

import pytest

from tests.raises import raises
from weir.inputs.file_formats import TABS, format_of


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("x.parquet", "parquet"),
        ("part-0.snappy.parquet", "parquet"),
        ("x.csv", "csv"),
        ("X.CSV", "csv"),
        ("days/2026.01.01.csv.gz", "csv"),
        ("x.csv.bz2", "csv"),
        ("x.tsv", TABS),
        ("x.tsv.gz", TABS),
        ("x.json", "json"),
        ("x.jsonl", "json"),
        ("x.ndjson.gz", "json"),
    ],
)
def test_the_ending_of_a_file_says_its_format(name: str, said: str) -> None:
    assert format_of([name]) == said
    assert format_of([name, f"other/{name}"]) == said


@pytest.mark.parametrize("name", ["x", "x.gz", "x.txt", "parquet", "csv", "x.parquet.gz"])
def test_an_ending_that_says_no_format_asks_for_the_format(name: str) -> None:
    with raises(f"file_invalid '{name}' choose parquet, csv or json"):
        format_of(["a.csv", name])


def test_files_of_several_formats_are_refused_by_name() -> None:
    with raises("file_invalid 'a.csv' csv 'c.parquet' parquet separately"):
        format_of(["a.csv", "b.csv", "c.parquet"])
