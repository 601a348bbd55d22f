"""Csv files as rows of texts: exactly what the file has, whoever wrote it."""

import io
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from weir.errors import InvalidInput
from weir.inputs import csv_pieces
from weir.inputs.csv_header import header
from weir.inputs.csv_pieces import Csv, Piece, looked_at, pieces_of, rows_of
from weir.inputs.csv_reader import is_utf8
from weir.inputs.csv_rows import CsvValues
from weir.inputs.values import here
from weir.kernel.text_options import TextOptions
from weir.model.schema import new_field

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
    "an empty value that is last": (b'a,1\n"b",', [("a", "1"), ("b", None)], []),
    "what is no blank after quotes": ('"a"\u00a0,1\n"b" \t,2\n'.encode(),
        [('"a"\u00a0', "1"), ("b", "2")], []),
    "nothing": (b"", [], []),
}  # fmt: skip


def read(
    text: bytes, how: TextOptions, names: tuple[str, ...] = ("k", "n"), most: int = 1 << 30
) -> tuple[list[Any], list[int], list[Any]]:
    """The rows of a file that is read in pieces, their numbers, and its malformed rows."""
    with tempfile.TemporaryDirectory() as root:
        Path(root, "a.csv").write_bytes(text)
        csv = Csv(root, ("a.csv",), names, how)
        pieces, looked = looked_at(csv, pieces_of(csv, [len(text)], most, here), here)
        parts = [part for piece in pieces for part in rows_of(csv, piece)]
    assert sum(one.rows for one in looked) == sum(part.count for part in parts)
    found = [
        row
        for part in parts
        for row in zip(*map(pa.ChunkedArray.to_pylist, part.table.columns), strict=True)
    ]
    numbers = [int(one) for part in parts for one in part.numbers]
    return found, numbers, [row for part in parts for row in part.malformed]


def rows(text: bytes, how: TextOptions, names: tuple[str, ...] = ("k", "n")) -> list[Any]:
    """The rows of a file."""
    return read(text, how, names)[0]


@pytest.mark.parametrize("case", CASES)
def test_rows_have_the_texts_of_the_file_and_their_numbers(case: str) -> None:
    content, wanted, malformed = CASES[case]
    bad = {number for number, _ in malformed}
    numbers = [n for n in range(len(wanted) + len(malformed)) if n not in bad]
    for most in (1 << 20, 5, 1):
        found = read(b"\xef\xbb\xbfk,n\n" + content, TextOptions(), most=most)
        assert found == (wanted, numbers, malformed)


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


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_line_of_blanks_is_no_row_whatever_ends_it(end: str) -> None:
    for separator, b in ((",", "b"), ("\t", "b\tc")):
        text = end.join([" ", b, "\t ", b, "\t", ""]).encode()
        names = ("k", "n")[: len(b.split("\t"))]
        assert rows(text, TextOptions(separator=separator), names) == [tuple(b.split("\t"))]


@pytest.mark.parametrize("case", range(cases(60)))
def test_files_are_read_alike_in_whatever_pieces(
    case: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = random_for(case)
    quote = random.choice("\"'")
    escape = random.choice(["", "", "\\"])
    signs = [*"ab#", ",", quote, "\\", "\n", "\r\n", "\r", " ", "ä"]
    texts = ["".join(random.choices(signs, k=random.randrange(9))) for _ in range(60)]
    wanted = [(random.choice(texts) + "x", random.choice([*texts, None])) for _ in range(40)]

    def written(text: str | None) -> str:
        if text is None:
            return ""
        if escape:
            text = text.replace(escape, escape * 2)
        return quote + text.replace(quote, (escape or quote) + quote) + quote

    end = random.choice(["\n", "\r\n"])
    lines = [f"{written(k)},{written(n)}" for k, n in wanted]
    more = random.choice([[], [], ["# no 'row"], ["#"], [f"a{quote}b,3"]])
    for line in more:
        lines.insert(random.randrange(40), line)
    comment = "#" if more and more[0][0] == "#" else ""
    text = end.join(["k,n", *lines, ""]).encode()
    monkeypatch.setattr(csv_pieces, "CHUNK", random.randrange(1, 200))
    monkeypatch.setattr(csv_pieces, "FIELDS", random.randrange(1, 200))
    how = TextOptions(quote=quote, escape=escape, comment=comment)
    found, numbers, malformed = read(text, how, most=random.randrange(1, 500))
    assert [row for row in found if row[1] != "3"] == [(k, n) for k, n in wanted if n != "3"]
    assert (numbers, malformed) == (list(range(len(found))), [])


@pytest.mark.parametrize(
    "first",
    [rb"a\,b,c", rb'"a\b",c', rb'"a\"b",c', b'"a""b",c', b'"a" ,b', b'"a"b,c', b'"a\r\nb",'],
)
def test_a_header_line_has_the_values_of_a_row(first: bytes) -> None:
    for escape in ("\\", ""):
        how = TextOptions(escape=escape, header=False)
        text = b"\n" + first + b"\r\n"
        names = header(io.BytesIO(text), "a.csv", how).names
        [row] = rows(text, how, tuple(map(str, range(len(names)))))
        assert names == [one or "" for one in row]


def test_a_quote_that_is_never_closed_is_found_with_its_line() -> None:
    with pytest.raises(InvalidInput, match=r"quotes that open in line 3 of 'a.csv' are never"):
        rows(b'k,n\na,1\nb,"2\nc,3\n', TextOptions())


def test_bytes_that_are_not_utf8_are_found_before_quotes_that_they_may_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_pieces, "FIELDS", 20)
    text = b'k,n\na"b"c,1\n"xxxxxxxxxxxxxxx\nyyyyyyyyyy\xff",2\n' + b"z,1\n" * 8
    (tmp_path / "a.csv").write_bytes(text)
    csv = Csv(str(tmp_path), ("a.csv",), ("k", "n"), TextOptions())
    _, [looked] = looked_at(csv, [Piece(0, 0, by_fields=True)], here)
    assert looked.finding is not None
    assert looked.finding.not_utf8 == 1


def test_a_row_that_is_set_aside_is_written_so_that_it_reads_the_same(tmp_path: Path) -> None:
    how = TextOptions(escape="\\", comment="#", header=False)
    fields = [new_field("k", "string"), new_field("n", "long")]
    for first in (b'"#a"', rb'"a,\\"', rb'"\"\\"', b"a\\", b'""'):
        text = first + b",x\n"
        (tmp_path / "a.csv").write_bytes(text)
        csv = Csv(str(tmp_path), ("a.csv",), ("k", "n"), how)
        [table] = CsvValues(csv, [Piece(0, 0)], fields).tables(Piece(0, 0))
        [mark] = table["_weir_malformed"].to_pylist()
        assert rows(mark["row"].encode() + b"\n", how) == rows(text, how)


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


def test_a_header_in_another_encoding_is_shown_without_its_codes() -> None:
    with pytest.raises(InvalidInput, match=r"it has 'Temperatur \ufffdC'\)"):
        header(
            io.BytesIO("Ort;Temperatur °C\n".encode("latin-1")), "a.csv", TextOptions(separator=";")
        )
