"""Csv files in pieces that begin and end where rows do, so that many processes read them at once,
and none keeps a file in memory.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from weir.errors import InvalidInput
from weir.inputs.compression import compression_at
from weir.inputs.csv_header import Finding, check_encoding, finding_of, not_closed
from weir.inputs.csv_quotes import Crossing, NotRegular, crossing, end_of_rows, may_be_regular
from weir.inputs.csv_reader import LONGEST_ROW, CsvRows, NotClosed, read_csv, read_fields
from weir.inputs.rows import Run
from weir.inputs.text_guess import Look, look
from weir.inputs.unreadable import text_of, unreadable_now
from weir.kernel.text_options import TextOptions

CHUNK = 16 << 20  # bytes that are parsed at once
FIELDS = 4 << 20  # the same of a file that is taken apart field by field: each takes 25 of memory
_LINE_END = re.compile(rb"\r\n?|\n")
# Encodings of which a byte that looks like a newline or a quote may be a part of a character.
_SEVERAL_BYTES = ("utf-16", "shift_jis", "euc", "gb18030", "big5")


@dataclass(frozen=True)
class Csv:
    """Csv files, and how their rows are read. `new`: the columns whose types are guessed."""

    root: str
    paths: tuple[str, ...]
    names: tuple[str, ...]
    how: TextOptions
    new: tuple[str, ...] = ()


@dataclass(frozen=True)
class Piece:
    """A part of a file. `bytes`: about so many; `end`: None for the end of the file; `row`: the
    number of its first row; `by_fields`: its quotes are not those of RFC 4180."""

    file: int
    bytes: int
    start: int = 0
    end: int | None = None
    row: int = 0
    by_fields: bool = False


@dataclass(frozen=True)
class Looked:
    """What was found in a piece: how many rows, and what the new columns show; `finding`: lines
    that are no text. Of a piece that is not `regular` nothing else is known."""

    rows: int = 0
    columns: tuple[Look, ...] = ()
    finding: Finding | None = None
    regular: bool = True


def pieces_of(csv: Csv, sizes: Sequence[int], most: int, run: Run) -> list[Piece]:
    """Return the pieces of files, in the order of their rows. A file of more than `most` bytes has
    several, if it is neither compressed nor written with an escape or comments."""
    blocks = []
    for file, size in enumerate(sizes):
        if size > most and _splits(csv.how) and not compression_at(csv.root, csv.paths[file]):
            blocks += [
                Piece(file, min(most, size - at), at, min(size, at + most))
                for at in range(0, size, most)
            ]
    found: dict[int, list[tuple[Piece, Crossing]]] = {}
    for block, crossed in zip(blocks, run(_Crossings(csv), blocks), strict=True):
        found.setdefault(block.file, []).append((block, crossed))
    pieces = []
    for file, size in enumerate(sizes):
        starts, quotes = [0], 0
        for block, crossed in found.get(file, []):
            place = crossed.odd if quotes % 2 else crossed.even
            if block.start and place >= 0:
                starts.append(block.start + place)
            quotes += crossed.quotes
        pieces += [
            Piece(file, (size if end is None else end) - start, start, end)
            for start, end in zip(starts, [*starts[1:], None], strict=True)
            if start != end
        ]
    return pieces


def _splits(how: TextOptions) -> bool:
    escaped = how.comment or how.escape not in ("", how.quote)
    single = not how.encoding.startswith(_SEVERAL_BYTES)
    return single and not escaped and may_be_regular(how)


@dataclass(frozen=True)
class _Crossings:
    csv: Csv

    def __call__(self, block: Piece) -> Crossing:
        """Return where a row may begin in a block."""
        as_it_is = replace(self.csv, how=replace(self.csv.how, encoding="utf-8"))
        text = b"".join(_plain(as_it_is, block))
        return crossing(text, self.csv.how)


def looked_at(csv: Csv, pieces: list[Piece], run: Run) -> tuple[list[Piece], list[Looked]]:
    """Look at each row. Return the pieces with the numbers of their rows, and what was found.
    Raises InvalidInput that names what can't be read."""
    found = run(_Looks(csv), pieces)
    irregular = {piece.file for piece, one in zip(pieces, found, strict=True) if not one.regular}
    if irregular:
        again = [
            Piece(file, sum(one.bytes for one in pieces if one.file == file), by_fields=True)
            for file in sorted(irregular)
        ]
        others = [(p, one) for p, one in zip(pieces, found, strict=True) if p.file not in irregular]
        every = [*others, *zip(again, run(_Looks(csv), again), strict=True)]
        every.sort(key=lambda both: (both[0].file, both[0].start))
        pieces, found = [piece for piece, _ in every], [one for _, one in every]
    return numbered(pieces, [one.rows for one in found]), found


def numbered(pieces: Sequence[Piece], counts: Sequence[int]) -> list[Piece]:
    """Return pieces with the numbers of their first rows. `counts`: how many rows each has."""
    found, rows, file = list[Piece](), 0, -1
    for piece, count in zip(pieces, counts, strict=True):
        rows = rows if piece.file == file else 0
        found.append(replace(piece, row=rows))
        file, rows = piece.file, rows + count
    return found


@dataclass(frozen=True)
class _Looks:
    csv: Csv

    def __call__(self, piece: Piece) -> Looked:
        """Look at each row of a piece."""
        csv, path = self.csv, self.csv.paths[piece.file]
        rows, columns, findings = 0, [Look()] * len(csv.new), list[Finding]()
        try:
            for found in _parsed(csv, piece, findings):
                rows += found.count
                columns = [
                    column + look(found.table[name], csv.how, column)
                    for name, column in zip(csv.new, columns, strict=True)
                ]
        except NotRegular:
            return Looked(regular=False)
        if findings and csv.how.encoding != "utf-8":
            check_encoding(csv.root, path, csv.how)
        return Looked(rows, tuple(columns), sum(findings[1:], findings[0]) if findings else None)


def rows_of(csv: Csv, piece: Piece) -> Iterator[CsvRows]:
    """Yield the rows of a piece, with their numbers in the file."""
    row = piece.row
    for found in _parsed(csv, piece, []):
        malformed = [(number + row, text) for number, text in found.malformed]
        yield replace(found, numbers=found.numbers + row, malformed=malformed)
        row += found.count


def _parsed(csv: Csv, piece: Piece, findings: list[Finding]) -> Iterator[CsvRows]:
    """Yield the rows of a piece, with their numbers in what is yielded. `findings`: gets what is no
    text, which is left out."""
    how, header = csv.how, csv.how.header and not piece.start

    def checked() -> Iterator[bytes]:
        for text in _texts(csv, piece):
            if (found := finding_of(text)) is None:
                yield text
            else:
                findings.append(found)

    try:
        if piece.by_fields:
            parts = read_fields(checked(), csv.names, how)
        else:
            parts = (read_csv(text, csv.names, how) for text in checked())
        for found in parts:
            if header and found.count:
                header, found = False, found.without_first()
            yield found
    except NotClosed as error:
        if findings:  # what is no text may have the quotes that close them
            return
        path = csv.paths[piece.file]
        raise not_closed(path, error.line + how.skip_lines, how) from None


def _texts(csv: Csv, piece: Piece) -> Iterator[bytes]:
    """Yield the text of a piece in UTF-8, each part of which ends where a row does; that of a piece
    that is read by its fields where a line does."""
    how, kept = csv.how, b""
    most = FIELDS if piece.by_fields else CHUNK
    lines = replace(how, quote="", escape="") if piece.by_fields or not may_be_regular(how) else how
    for text in _plain(csv, piece, most):
        kept += text
        if len(kept) < most:
            continue
        place = end_of_rows(kept, lines)
        if place:
            yield kept[:place]
            kept = kept[place:]
        elif len(kept) > LONGEST_ROW and piece.by_fields:
            raise InvalidInput(
                "file_invalid",
                f"a line of {csv.paths[piece.file]!r} has more than {LONGEST_ROW:,} bytes; check "
                "that it is a csv file.",
            )
        elif len(kept) > LONGEST_ROW:
            raise NotRegular
    if kept:
        yield kept


def _plain(csv: Csv, piece: Piece, at_once: int = CHUNK) -> Iterator[bytes]:
    """Yield the text of a piece in UTF-8, without a mark of the byte order and the lines to
    skip."""
    path, how = csv.paths[piece.file], csv.how
    try:
        with text_of(csv.root, path) as source:
            if piece.start:
                source.seek(piece.start)
            left = None if piece.end is None else piece.end - piece.start
            texts = _decoded(_read(source, left, at_once), how)
            yield from texts if piece.start else _from_header(texts, how)
    except UnicodeDecodeError:
        check_encoding(csv.root, path, how)
        raise
    except OSError as error:
        raise unreadable_now(path, error) from None


def _read(source: pa.NativeFile, left: int | None, at_once: int) -> Iterator[bytes]:
    while data := source.read(at_once if left is None else min(left, at_once)):
        left = None if left is None else left - len(data)
        yield data


def _decoded(parts: Iterable[bytes], how: TextOptions) -> Iterator[bytes]:
    if how.encoding == "utf-8":
        yield from parts
        return
    decoder = codecs.getincrementaldecoder(how.encoding)("strict")
    for part in parts:
        yield decoder.decode(part).encode()
    yield decoder.decode(b"", final=True).encode()


def _from_header(texts: Iterable[bytes], how: TextOptions) -> Iterator[bytes]:
    """Yield the text of a file from its header line on."""
    begin, skip = True, how.skip_lines
    for text in texts:
        if begin:
            begin, text = False, text.removeprefix(codecs.BOM_UTF8)
        while skip and (match := _LINE_END.search(text)):
            text, skip = text[match.end() :], skip - 1
        if not skip:
            yield text
