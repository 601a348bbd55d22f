"""The header lines of csv files: the columns that they name, and that all files name the same."""

import codecs
import io
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import IO

from weir.errors import InvalidInput
from weir.front_ends import give
from weir.inputs.csv_reader import NotClosed, first_row, is_utf8
from weir.inputs.files import Inputs
from weir.inputs.unreadable import text_of
from weir.kernel.text_options import ENCODINGS, TextOptions
from weir.model.names import shortened, unstorable
from weir.model.schema import Field, new_field, plain, show

LONGEST_HEADER = 1 << 20  # bytes
_PIECE = 1 << 20
_END = 4_096  # bytes of a file in which its last line is looked for
_SEPARATOR = re.compile(r'"?sep=([^\r\n"])"?')


@dataclass(frozen=True)
class Finding:
    """How many lines of a file are not UTF-8, how many have NUL, and the first of them."""

    not_utf8: int
    nul: int
    example: str

    def __add__(self, other: "Finding") -> "Finding":
        """Return what was found in a text and in what follows it."""
        first = other if other.not_utf8 and not self.not_utf8 else self
        return Finding(self.not_utf8 + other.not_utf8, self.nul + other.nul, first.example)


@dataclass(frozen=True)
class Header:
    """The first record of a csv file: the columns that it names, or the values that it has.
    `how`: the options with what the file itself says (`sep=;`)."""

    names: list[str]
    how: TextOptions


def names_of(inputs: Inputs, known: list[Field] | None) -> Header:
    """Return the columns of csv files, whose header lines must be the same, and the options with
    which they are read. `known`: the columns of the stream. Raises InvalidInput for header lines
    that can't be columns of a stream."""

    def first(path: str) -> Header:
        with text_of(inputs.root, path) as source:
            return header(source, path, inputs.how)

    with ThreadPoolExecutor(16) as pool:
        headers = list(pool.map(first, [file.path for file in inputs.files]))
    one, how = headers[0], headers[0].how
    for file, other in zip(inputs.files, headers, strict=True):
        if not other.names:
            what = f"header line; write one, or {give(header=False)}" if how.header else "row"
            raise InvalidInput("file_invalid", f"the file {file.path!r} has no {what}.")
        if other.how != how or (
            other.names != one.names if how.header else len(other.names) != len(one.names)
        ):
            raise InvalidInput(
                "file_invalid",
                f"the header line of {file.path!r} ({', '.join(other.names[:5])}) is not the same "
                f"as that of {inputs.files[0].path!r} ({', '.join(one.names[:5])}); append files "
                "with different headers separately.",
            )
    if not how.header and known and len(known) != len(one.names):
        raise InvalidInput(
            "column_unknown",
            f"the first row of {inputs.files[0].path!r} has {len(one.names)} values, but the "
            f"stream has {len(known)} columns, and the files have no header line; add one.",
        )
    names = [name if name and how.header else f"_c{i}" for i, name in enumerate(one.names)]
    if not how.header and known:
        names = [field["name"] for field in known]
    # Before anything else of the files is read: there may be thousands too many.
    plain([new_field(name, "string") for name in names])
    _check_separator(inputs, names, known)
    return Header(names, how)


def text_fields(names: Sequence[str], known: list[Field] | None) -> list[Field]:
    """Return the columns in the types of the stream; others are texts. Raises InvalidInput for a
    type that no text has."""
    types = {one["name"]: one for one in known or []}
    found = [types.get(name) or new_field(name, "string") for name in names]
    for one in found:
        if not isinstance(one["type"], str):
            raise InvalidInput(
                "column_type_unsupported",
                f"column {one['name']!r} is {show(one['type'])} in the stream, which a csv file "
                "can't hold; append it as json or Parquet.",
            )
    return found


def header(source: IO[bytes], path: str, how: TextOptions) -> Header:
    """Return the first record of a csv file after the lines to skip. It may have newlines in
    quotes. Raises InvalidInput if it is too long, cannot be read, or is not in its encoding."""
    start = source.read(LONGEST_HEADER)
    decoder = codecs.getincrementaldecoder(how.encoding)(
        "surrogateescape" if how.encoding == "utf-8" else "strict"
    )
    try:
        text = decoder.decode(start, final=False).removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise InvalidInput(
            "file_invalid",
            f"the first lines of {path!r} are not {ENCODINGS[how.encoding]} text; "
            f"{give(encoding='ENCODING')} with that of the file.",
        ) from None
    lines = io.StringIO(text, newline="").readlines()
    if lines:
        how = _told(lines[0], how)
    text = "".join(lines[how.skip_lines :])
    try:
        found, end = first_row(text, how)
    except NotClosed as error:
        found, end = [], len(text)
        if len(start) < LONGEST_HEADER:
            raise not_closed(path, error.line + how.skip_lines, how) from None
    if len(start) == LONGEST_HEADER and end == len(text):
        raise InvalidInput(
            "file_invalid",
            f"the header line of {path!r} is longer than {LONGEST_HEADER:,} bytes; check that it "
            "is a csv file with a header line.",
        )
    for name in found if how.header else ():
        if unstorable(name):
            seen = name.encode(errors="surrogateescape").decode(errors="replace")
            raise InvalidInput(
                "file_invalid",
                f"the header line of {path!r} is not {ENCODINGS[how.encoding]} text (it has "
                f"{shortened(seen, 60)}); {give(encoding='ENCODING')} with that of the file, such "
                "as windows-1252 or utf-16.",
            )
    return Header(found, how)


def _told(line: str, how: TextOptions) -> TextOptions:
    """Return the options with the separator that the first line of a file names, as Excel reads it
    (`sep=;`); that line is none of the data then."""
    if how.skip_lines or not (match := _SEPARATOR.fullmatch(line.rstrip("\r\n"))):
        return how
    separator = match[1] if how.separator == "," else how.separator
    return replace(how, separator=separator, skip_lines=1)


def check_text_of(path: str, found: Finding) -> None:
    """Raise InvalidInput for a file with bytes that are not UTF-8, or with NUL characters."""
    if found.not_utf8:
        raise InvalidInput(
            "file_invalid",
            f"{found.not_utf8:,} lines of {path!r} are not UTF-8 (the first one is "
            f"{shortened(found.example)}); for a csv file {give(encoding='ENCODING')} with that of "
            "the file, such as windows-1252, or convert it, for example with iconv -f windows-1252 "
            "-t UTF-8.",
        )
    if found.nul:
        raise InvalidInput(
            "file_invalid",
            f"{found.nul:,} lines of {path!r} have NUL characters (\\x00; the first one is "
            f"{shortened(found.example)}); remove them, or for a csv file "
            f"{give(encoding='ENCODING')} with that of the file, such as utf-16.",
        )


def _check_separator(inputs: Inputs, names: list[str], known: list[Field] | None) -> None:
    """Raise InvalidInput for a single column whose name looks like several."""
    if len(names) > 1 or names[0] in {one["name"] for one in known or []}:
        return
    for other in (";", "\t", "|", ","):
        if other in names[0]:
            raise InvalidInput(
                "file_invalid",
                f"the header line of {inputs.files[0].path!r} has one column, "
                f"{shortened(names[0])}; {give(separator=other)} if the file uses it, or rename "
                "the column.",
            )


def finding_of(text: bytes) -> Finding | None:
    """Return what is wrong with a text that is not UTF-8, or has NUL characters."""
    if b"\0" not in text and is_utf8(text):
        return None
    wrong = [line for line in text.split(b"\n") if not is_utf8(line)]
    nul = [line for line in text.split(b"\n") if b"\0" in line]
    example = (wrong or nul)[0][:80].decode(errors="replace")
    return Finding(len(wrong), len(nul), example)


def not_closed(path: str, line: int, how: TextOptions) -> InvalidInput:
    """Return the error for a file with quotes that are never closed."""
    return InvalidInput(
        "file_invalid",
        f"the quotes that open in line {line:,} of {path!r} are never closed; add the "
        f"missing {how.quote}, or {give(quote='none')} if the file does not quote.",
    )


def unfinished(inputs: Inputs) -> dict[str, str]:
    """Return the last lines that have no end, by file, shortened: nobody can see whether more of
    them was to come."""

    def last(path: str) -> str:
        end = b""
        with text_of(inputs.root, path) as source:
            if source.seekable():
                source.seek(max(0, source.size() - _END))
            while piece := source.read(_PIECE):
                end = (end + piece)[-_END:]
        if not inputs.how.wide:
            text = end.decode(inputs.how.encoding, errors="replace")
        else:  # in whichever order its bytes are
            end = end.replace(b"\r\0", b"\n").replace(b"\0\r", b"\n")
            text = end.replace(b"\n\0", b"\n").replace(b"\0\n", b"\n").decode("latin-1")
        text = text.replace("\0", "")
        return "" if text.endswith(("\n", "\r")) else (text.splitlines() or [""])[-1].strip()

    with ThreadPoolExecutor(16) as pool:
        found = zip(inputs.files, pool.map(last, [file.path for file in inputs.files]), strict=True)
        return {file.path: shortened(line, 60) for file, line in found if line}


def check_encoding(root: str, path: str, how: TextOptions) -> None:
    """Raise InvalidInput for a file with bytes that its encoding does not have, or with NUL."""
    decoder = codecs.getincrementaldecoder(how.encoding)("strict")
    line = 1
    with text_of(root, path) as source:
        while True:
            piece = source.read(_PIECE)
            try:
                text = decoder.decode(piece, final=not piece)
            except UnicodeDecodeError as error:
                wrong = error.object[error.start : error.start + 4]
                raise InvalidInput(
                    "file_invalid",
                    f"{path!r} is not {ENCODINGS[how.encoding]}: at about line "
                    f"{line:,} it has the bytes {wrong.hex(' ')}, which that lacks; "
                    f"{give(encoding='ENCODING')} with that of the file.",
                ) from None
            line += text.count("\n")
            if "\0" in text:
                raise InvalidInput(
                    "file_invalid",
                    f"{path!r} has NUL characters at about line {line:,}; remove them, or "
                    f"{give(encoding='ENCODING')} with that of the file.",
                )
            if not piece:
                return
