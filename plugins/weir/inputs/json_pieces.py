"""Json files in pieces: each has the lines that begin in a part of a file, so that many processes
read them at once, and none keeps a file in memory."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from weir.errors import InvalidInput
from weir.inputs.compression import compression_at
from weir.inputs.csv_header import Finding, finding_of
from weir.inputs.csv_pieces import Piece, numbered
from weir.inputs.json_guess import Shape, shape_of
from weir.inputs.json_reader import Objects, read_json
from weir.inputs.rows import Run
from weir.inputs.unreadable import text_of, unreadable_now

CHUNK = 2 << 20  # bytes that are parsed at once: as Python's values they take fifteen of memory
LONGEST = 256 << 20  # bytes of a line that a process takes into memory
_LINE_END = re.compile(rb"\r\n|\n|\r(?=[\s\S])")
_LAST_LINE_END = re.compile(rb"\r\n?|\n")


@dataclass(frozen=True)
class Json:
    """Json files."""

    root: str
    paths: tuple[str, ...]


@dataclass(frozen=True)
class Looked:
    """What was found in a piece: how many rows, what their values show, and what `Objects` has of
    its lines; `finding`: lines that are no text."""

    rows: int = 0
    shape: Shape = Shape()
    twice: str = ""
    longest: int = 0
    example: str = ""
    finding: Finding | None = None

    def __add__(self, other: "Looked") -> "Looked":
        findings = [one for one in (self.finding, other.finding) if one is not None]
        return Looked(
            self.rows + other.rows, self.shape + other.shape, self.twice or other.twice,
            max(self.longest, other.longest), self.example or other.example,
            sum(findings[1:], findings[0]) if findings else None,
        )  # fmt: skip


def pieces_of(files: Json, sizes: Sequence[int], most: int) -> list[Piece]:
    """Return the pieces of files, in the order of their rows. A file of more than `most` bytes has
    several, if it is not compressed."""
    pieces = []
    for file, size in enumerate(sizes):
        if size <= most or compression_at(files.root, files.paths[file]):
            pieces.append(Piece(file, size))
            continue
        pieces += [
            Piece(file, min(most, size - at), at, at + most if at + most < size else None)
            for at in range(0, size, most)
        ]
    return pieces


def looked_at(files: Json, pieces: Sequence[Piece], run: Run) -> tuple[list[Piece], list[Looked]]:
    """Look at each line. Return the pieces with the numbers of their rows, and what was found in
    each. Raises InvalidInput for a file that is no lines."""
    found = run(_Looks(files), pieces)
    return numbered(pieces, [one.rows for one in found]), found


@dataclass(frozen=True)
class _Looks:
    files: Json

    def __call__(self, piece: Piece) -> Looked:
        """Look at each line of a piece."""
        whole = Looked()
        for text in _texts(self.files, piece):
            found = read_json(text)
            whole += Looked(
                found.count, shape_of(found.rows), found.twice, found.longest, found.example,
                finding_of(text),
            )  # fmt: skip
        return whole


def objects_of(files: Json, piece: Piece) -> Iterator[Objects]:
    """Yield the objects of a piece, with their numbers in the file."""
    row = piece.row
    for text in _texts(files, piece):
        found = read_json(text, row)
        row = found.count
        yield found


def _texts(files: Json, piece: Piece) -> Iterator[bytes]:
    """Yield the lines of a piece, some megabytes at once."""
    path = files.paths[piece.file]
    # A line begins after the first line end that is at or after the last byte before the piece.
    place = max(piece.start - 1, 0)
    kept, begun = bytearray(), not piece.start
    try:
        with text_of(files.root, path) as source:
            if place:
                source.seek(place)
            more = True
            while more:
                data = source.read(CHUNK)
                kept += data
                more = bool(data)
                if not begun:
                    end = _after_line(kept, 0, last=not more)
                    if end < 0:
                        if len(kept) > LONGEST:
                            raise _too_long(path)
                        continue
                    del kept[:end]
                    place, begun = place + end, True
                if piece.end is not None and place >= piece.end:
                    return
                if piece.end is not None and place + len(kept) >= piece.end:
                    end = _after_line(kept, piece.end - 1 - place, last=not more)
                    end = len(kept) if end < 0 and not more else end
                    more = end < 0
                elif more:
                    end = max(kept.rfind(b"\n"), kept.rfind(b"\r", 0, len(kept) - 1)) + 1 or -1
                else:
                    end = len(kept)
                if end > 0:
                    yield bytes(kept[:end])
                    del kept[:end]
                    place += end
                elif len(kept) > LONGEST:
                    raise _too_long(path)
    except OSError as error:
        raise unreadable_now(path, error) from None


def _after_line(text: bytearray, begin: int, *, last: bool) -> int:
    """Return where the first line end at or after a place ends; -1 if that is not known yet."""
    match = (_LAST_LINE_END if last else _LINE_END).search(text, begin)
    return match.end() if match else -1


def _too_long(path: str) -> InvalidInput:
    return InvalidInput(
        "file_invalid",
        f"a line of {path!r} has more than {LONGEST:,} bytes; write one object per line.",
    )
