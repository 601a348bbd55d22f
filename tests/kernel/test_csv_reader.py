"""Csv files as rows of texts: exactly what the file has, whoever wrote it."""

from typing import Any

import pytest

from weir.kernel import csv_reader
from weir.kernel.csv_reader import NotClosed, NotRegular, encoded, is_utf8, read_csv
from weir.kernel.text_options import TextOptions

# What a file has after its header line, its rows, and its malformed rows, with their numbers.
CASES: dict[str, tuple[bytes, list[Any], list[Any]]] = {
    "line ends within quotes stay": (
        b'"x\r\ny",1\r\n"u\nv",2\r\n"\r",3\r\n',
        [("x\r\ny", "1"), ("u\nv", "2"), ("\r", "3")], [],
    ),
    "each kind of line end": (b"a,1\nb,2\r\nc,3\rd,4", [*zip("abcd", "1234", strict=True)], []),
    "a doubled quote, separators": (b'"say ""hi"", all",1\n', [('say "hi", all', "1")], []),
    "null and an empty text": (b',""\n"",\n', [(None, ""), ("", None)], []),
    "blanks stay": (b' a , "b"\n', [(" a ", ' "b"')], []),
    "quotes within a field": (b'3" pipe,1\n"a"b,2\n""x,3\n', [('3" pipe', "1"), ('"a"b', "2"),
        ('""x', "3")], []),
    "lines of blanks are no rows": (b"a,1\n\n  \nb,2\n", [("a", "1"), ("b", "2")], []),
    "more or fewer values": (b'a,1\nb\n\n"c\nd",2,3\n"e",4\n', [("a", "1"), ("e", "4")],
        [(1, "b"), (2, '"c\nd",2,3')]),
    "the same by its fields": (b'a"",1\nb\n\n"c\nd",2,3\n"e",4\n', [('a""', "1"), ("e", "4")],
        [(1, "b"), (2, '"c\nd",2,3')]),
    "nothing": (b"", [], []),
}  # fmt: skip


def rows(text: bytes, how: TextOptions, names: tuple[str, ...] = ("k", "n")) -> list[Any]:
    """The rows of a file."""
    table = read_csv(encoded(text, how), names, how).table
    return list(zip(*(one.to_pylist() for one in table.columns), strict=True))


@pytest.mark.parametrize("case", CASES)
def test_rows_have_the_texts_of_the_file_and_their_numbers(case: str) -> None:
    content, wanted, malformed = CASES[case]
    how = TextOptions()
    found = read_csv(encoded(b"k,n\n" + content, how), ["k", "n"], how)
    assert rows(b"\xef\xbb\xbfk,n\n" + content, how) == wanted
    assert found.malformed == malformed
    bad = {number for number, _ in malformed}
    total = len(wanted) + len(malformed)
    assert found.numbers.tolist() == [n for n in range(total) if n not in bad]


@pytest.mark.parametrize(
    ("text", "options", "wanted"),
    [
        (b"x\ny\nk;n\na;1\n", {"separator": ";", "skip_lines": 2}, [("a", "1")]),
        (b"k\tn\n\"a\tb\"\t1\n", {"separator": r"\t"}, [("a\tb", "1")]),
        (b"# c\nk,n\n# \"\na,1\n", {"comment": "#"}, [("a", "1")]),
        (rb"k,n" b"\n" rb"'it\'s \\',1" b"\n", {"quote": "'", "escape": "\\"}, [("it's \\", "1")]),
        (b'k,n\n"a,1\n', {"quote": "none"}, [('"a', "1")]),
        (b'k,n\nNA,1\n"NA",\n', {"null_value": "NA"}, [(None, "1"), (None, None)]),
        (b"a,1\n", {"header": False}, [("a", "1")]),
        ("k\tn\n日本\t1\n".encode("utf-16"), {"separator": r"\t", "encoding": "utf-16"},
         [("日本", "1")]),
        ("k§n\nä§1\n".encode("cp1252"), {"separator": "§", "encoding": "cp1252"}, [("ä", "1")]),
    ],
)  # fmt: skip
def test_a_file_is_read_as_its_options_say(
    text: bytes, options: dict[str, Any], wanted: list[Any]
) -> None:
    assert rows(text, TextOptions(**options)) == wanted


def test_one_column_has_a_row_for_each_line_that_is_not_blank() -> None:
    assert rows(b'k\na\n \n""\n\nb\n', TextOptions(), ("k",)) == [("a",), ("",), ("b",)]


def test_a_large_file_is_not_taken_apart_field_by_field(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv_reader, "MOST_IRREGULAR", 20)
    assert len(rows(b"k,n\n" + b"a,1\n" * 9, TextOptions())) == 9
    with pytest.raises(NotRegular):
        rows(b"k,n\n" + b'a,"1"x\n' * 9, TextOptions())


def test_a_quote_that_is_never_closed_is_found_with_its_line() -> None:
    with pytest.raises(NotClosed) as found:
        rows(b'k,n\na,1\nb,"2\nc,3\n', TextOptions())
    assert found.value.line == 3


def test_bytes_that_are_not_utf8_are_found() -> None:
    assert is_utf8("ä€".encode())
    assert is_utf8(b"")
    assert not is_utf8(b"a\xffb")
    assert not is_utf8("ä".encode("cp1252"))


@pytest.mark.parametrize(("last", "read"), [("3", "3"), ('"3"x', '"3"x')])
def test_a_line_of_separators_that_are_blanks_is_no_row_however_the_rest_is_quoted(
    last: str, read: str
) -> None:
    text = f"\t\t\nk\tn\tm\na\t1\t2\n\t\t\n\t\nb\t2\t{last}\n".encode()
    found = rows(text, TextOptions(separator="\t"), ("k", "n", "m"))
    assert found == [("a", "1", "2"), ("b", "2", read)]
