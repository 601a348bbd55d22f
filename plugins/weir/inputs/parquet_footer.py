"""The footer of a Parquet file as data: its columns' elements, codecs and row groups.

The footer of a file that somebody hands in is read here and by nothing else before it is checked:
native readers abort the process at some footers, and follow what a footer says beside its columns.
What is kept is only what Parquet itself defines, and by which calendar an old Spark has counted.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pyarrow import NativeFile

MAGIC = b"PAR1"
_ENCRYPTED = b"PARE"
_LONGEST = 64 << 20  # bytes of a footer; parsing more takes minutes
_MOST_ELEMENTS = 100_000  # columns and groups of a schema
_DEEPEST = 64  # structs within structs of the footer itself
_TAIL = 64 << 10  # bytes that are read at once, as most footers are shorter
# Thrift's compact protocol (https://github.com/apache/thrift, doc/specs).
_TRUE, _FALSE, _BYTE, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT, _UUID = (
    *(1, 2, 3, 7, 8, 9, 10, 11, 12, 13),
)
_NUMBERS = (4, 5, 6)
# The fields that are kept, by the numbers of parquet.thrift, and their types; of a field that is a
# struct, those of it. All others are skipped.
Value: TypeAlias = bool | int | str | bytes | dict[int, "Value"]
_Wanted: TypeAlias = type | Mapping[int, "_Wanted"]
_UNIT: dict[int, _Wanted] = {1: {}, 2: {}, 3: {}}
_LOGICAL: dict[int, _Wanted] = {number: {} for number in range(1, 19)}
_LOGICAL |= {5: {1: int, 2: int}, 7: {1: bool, 2: _UNIT}, 8: {1: bool, 2: _UNIT}}
_LOGICAL |= {10: {1: int, 2: bool}}
_ELEMENT: dict[int, _Wanted] = {**dict.fromkeys((1, 2, 3, 5, 6, 7, 8), int), 4: str, 10: _LOGICAL}
_CHUNK: dict[int, _Wanted] = {1: str, 3: {4: int, 7: int, 9: int, 11: int}, 8: {}, 9: bytes}
_KEY_VALUE = {1: bytes, 2: bytes}
# Types of Arrow that pyarrow would make of the columns. It does not find them under another name.
_ARROWS, _HIDDEN = b"ARROW:schema", b"-RROW:schema"
_SPARK = b"org.apache.spark."
CODECS = ("UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW")


class WrongFooter(Exception):
    """The file is not a Parquet file, or not one that may be read; the text says why."""


class Encrypted(WrongFooter):
    """The file, or a column of it, is encrypted."""


@dataclass
class Footer:
    """What a footer says about the columns of a file."""

    elements: list[dict[int, Value]] = field(default_factory=list)  # in depth-first order
    codecs: set[int] = field(default_factory=set)
    groups: list[tuple[int, int, int]] = field(default_factory=list)  # rows, bytes, stored bytes
    digest: bytes = b""  # of its bytes
    hidden: list[int] = field(default_factory=list)  # where these name what no reader may follow
    old_days: bool = False  # whether days before 1582-10-15 are of the Julian calendar ...
    old_int96: bool = False  # ... or those of times of 96 bits

    def plain(self, data: bytes) -> bytes:
        """Return the bytes of this footer as those of a file without rows, which a native reader
        may read."""
        found = bytearray(data)
        for at in self.hidden:
            found[at : at + len(_HIDDEN)] = _HIDDEN
        return MAGIC + bytes(found) + len(found).to_bytes(4, "little") + MAGIC


def read_footer(source: NativeFile) -> Footer:
    """Read the footer of a Parquet file. Raises WrongFooter; OSError if the storage fails."""
    data, begin = footer_bytes(source)
    try:
        return _Parser(data, begin).footer()
    except (IndexError, struct.error):
        raise WrongFooter("its footer is cut off") from None
    except UnicodeDecodeError as error:
        raise WrongFooter(f"its footer has the name {error.object!r}, which is not UTF-8") from None


def digest_of(data: bytes) -> bytes:
    """Return what tells whether the bytes of a footer are those that were checked."""
    return hashlib.blake2b(data, digest_size=16).digest()


def footer_bytes(source: NativeFile) -> tuple[bytes, int]:
    """Return the bytes of the footer of a Parquet file, and where they begin. Raises as
    `read_footer`."""
    size = source.size()
    source.seek(max(0, size - _TAIL))
    tail = source.read(_TAIL)
    if size < 12:
        raise WrongFooter(f"it has only {size} bytes")
    if tail[-4:] == _ENCRYPTED:
        raise Encrypted("its footer is encrypted")
    if tail[-4:] != MAGIC:
        raise WrongFooter("it does not end in PAR1")
    length = int.from_bytes(tail[-8:-4], "little")
    if length > size - 12:
        raise WrongFooter(f"its footer is to have {length:,} bytes, but the file has {size:,}")
    if length > _LONGEST:
        raise WrongFooter(f"its footer has {length:,} bytes, but at most {_LONGEST:,} are read")
    if length + 8 > len(tail):
        source.seek(size - 8 - length)
        tail = source.read(length + 8)
    source.seek(0)
    if source.read(4) != MAGIC:
        raise WrongFooter("it does not begin with PAR1")
    return tail[-8 - length : -8], size - 8 - length


def number_in(about: dict[int, Value], at: int) -> int:
    """Return the number that something says in a field; 0 if it does not."""
    found = about.get(at)
    return found if isinstance(found, int) else 0


class _Parser:
    """Reads the bytes of a footer once, from front to back. Every length is checked against the
    bytes that are left, so that no reader after this one meets a hostile one."""

    def __init__(self, data: bytes, begin: int) -> None:
        self.data = data
        self.at = 0
        self.begin = begin  # of the footer in its file

    def footer(self) -> Footer:
        found = Footer(digest=digest_of(self.data))
        for number, kind in self._fields():
            if (number, kind) == (2, _LIST):
                count = self._struct_list()
                if count > _MOST_ELEMENTS:
                    raise WrongFooter(f"it has {count:,} columns and groups")
                found.elements = [self._struct(_ELEMENT, 0) for _ in range(count)]
            elif (number, kind) == (4, _LIST):
                for _ in range(self._struct_list()):
                    self._row_group(found)
            elif (number, kind) == (5, _LIST):
                for _ in range(self._struct_list()):
                    self._key_value(found)
            elif number == 8:
                raise Encrypted("its columns are encrypted")
            else:
                self._skip(kind, 0)
        return found

    def _row_group(self, found: Footer) -> None:
        rows = size = stored = 0
        for number, kind in self._fields():
            if number in (2, 3):
                value = self._whole(kind)
                rows, size = (value, size) if number == 3 else (rows, value)
                continue
            if (number, kind) != (1, _LIST):
                self._skip(kind, 0)
                continue
            for _ in range(self._struct_list()):
                chunk = self._struct(_CHUNK, 0)
                if 8 in chunk or 9 in chunk:
                    raise Encrypted("some of its columns are encrypted")
                if 1 in chunk:
                    raise WrongFooter("its columns lie in other files")
                about = chunk.get(3)
                if isinstance(about, dict):
                    stored += self._stored(about)
                    found.codecs |= {number_in(about, 4)} if 4 in about else set()
        if rows < 0 or size < 0:
            raise WrongFooter(f"it has {rows:,} rows of {size:,} bytes")
        found.groups.append((rows, size, stored))

    def _stored(self, about: dict[int, Value]) -> int:
        """Return how many bytes of the file a column of a row group takes."""
        length, start, first = (number_in(about, number) for number in (7, 9, 11))
        start = first if 0 < first < start else start
        if length < 0 or start < 0 or start + length > self.begin:
            raise WrongFooter("some of its columns lie outside of it")
        return length

    def _key_value(self, found: Footer) -> None:
        begin = self.at
        about = self._struct(_KEY_VALUE, 0)
        name, value = (about.get(number, b"") for number in (1, 2))
        assert isinstance(value, bytes), value
        if name == _ARROWS:
            while (begin := self.data.find(_ARROWS, begin, self.at)) >= 0:
                found.hidden.append(begin)
                begin += 1
        elif name == _SPARK + b"version":
            found.old_days |= value < b"3.0"
            found.old_int96 |= value < b"3.1"
        found.old_days |= name == _SPARK + b"legacyDateTime"
        found.old_int96 |= name == _SPARK + b"legacyINT96"

    def _fields(self) -> Iterator[tuple[int, int]]:
        number = 0
        while head := self._byte():
            kind, step = head & 15, head >> 4
            number = number + step if step else self._signed()
            yield number, kind

    def _struct(self, wanted: Mapping[int, _Wanted], depth: int) -> dict[int, Value]:
        found: dict[int, Value] = {}
        for number, kind in self._fields():
            if number not in wanted:
                self._skip(kind, depth)
            else:
                found[number] = self._value(kind, wanted[number], depth)
        return found

    def _value(self, kind: int, wanted: _Wanted, depth: int) -> Value:
        if isinstance(wanted, Mapping) and kind == _STRUCT:
            return self._struct(wanted, depth + 1)
        if wanted is bool and kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if wanted is int:
            return self._whole(kind)
        if wanted in (str, bytes) and kind == _BINARY:
            value = self._take(self._unsigned())
            return value.decode() if wanted is str else value
        raise WrongFooter(f"its footer has a value of type {kind} where none belongs")

    def _whole(self, kind: int) -> int:
        if kind != _BYTE and kind not in _NUMBERS:
            raise WrongFooter(f"its footer has a value of type {kind} where none belongs")
        return self._byte() if kind == _BYTE else self._signed()

    def _struct_list(self) -> int:
        count, kind = self._list()
        if kind != _STRUCT and count:
            raise WrongFooter(f"its footer has a list of type {kind} where none belongs")
        return count

    def _list(self) -> tuple[int, int]:
        head = self._byte()
        count = head >> 4
        return self._bounded(self._unsigned() if count == 15 else count), head & 15

    def _skip(self, kind: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise WrongFooter("its footer is nested too deeply")
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self._take(1)
        elif kind in _NUMBERS:
            self._unsigned()
        elif kind == _DOUBLE:
            self._take(8)
        elif kind == _BINARY:
            self._take(self._unsigned())
        elif kind in (_LIST, _SET):
            count, inner = self._list()
            for _ in range(count):
                self._skip_element(inner, depth + 1)
        elif kind == _MAP:
            if count := self._bounded(self._unsigned()):
                kinds = self._byte()
                for _ in range(count):
                    self._skip_element(kinds >> 4, depth + 1)
                    self._skip_element(kinds & 15, depth + 1)
        elif kind == _STRUCT:
            for _, inner in self._fields():
                self._skip(inner, depth + 1)
        elif kind == _UUID:
            self._take(16)
        else:
            raise WrongFooter(f"its footer has a value of the unknown type {kind}")

    def _skip_element(self, kind: int, depth: int) -> None:
        # In lists and maps, unlike in structs, a boolean takes a byte.
        self._skip(_BYTE if kind in (_TRUE, _FALSE) else kind, depth)

    def _byte(self) -> int:
        value = self.data[self.at]
        self.at += 1
        return value

    def _take(self, length: int) -> bytes:
        begin = self.at
        self.at += self._bounded(length)
        return self.data[begin : self.at]

    def _bounded(self, count: int) -> int:
        """Return a number of bytes, or of values that take at least one each."""
        if count > len(self.data) - self.at:
            raise WrongFooter("its footer is cut off")
        return count

    def _unsigned(self) -> int:
        data, at = self.data, self.at
        value = data[at]
        at += 1
        if value >= 128:
            value &= 127
            shift = 7
            while True:
                byte = data[at]
                at += 1
                value |= (byte & 127) << shift
                if byte < 128:
                    break
                shift += 7
                if shift > 63:
                    raise WrongFooter("its footer has a number of more than 64 bits")
        self.at = at
        return value

    def _signed(self) -> int:
        value = self._unsigned()
        return (value >> 1) ^ -(value & 1)
