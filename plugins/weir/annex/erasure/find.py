"""Find the places of the events that an erasure means."""

import functools
import hashlib
import json
import os
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import numpy as np
import pyarrow as pa
from sqlalchemy import Connection

from weir.annex.erasure.asked import without_values
from weir.annex.erasure.columns import Columns
from weir.annex.erasure.records import Offsets
from weir.arrow.read import read_rows
from weir.controller.read_plan import FileSlice, slices_of_stream
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.kernel.matching import Matching, fulfilling
from weir.kernel.schema import to_read
from weir.model.key_space import STEPS, routing_steps
from weir.model.schema import Field
from weir.settings import Settings

THREADS = max(1, min(4, os.cpu_count() or 1))  # that read files at the same time
Look = Callable[[Settings, FileSlice], str]  # what is in a file
# Looks at each of some files, here or in tasks of Spark: what is in them, in their order.
Each = Callable[[Settings, Look, Sequence[FileSlice]], list[str]]


def whole_files(connection: Connection, stream_id: int) -> tuple[list[FileSlice], Columns]:
    """Return all files of a stream, with what they have of events below the head, and the columns
    that they have: what was truncated is in them, too, and what was dropped."""
    slices = [
        part._replace(first_row=0, holes=0) for part in slices_of_stream(connection, stream_id)
    ]
    return slices, Columns.of(connection, stream_id)


def with_keys(slices: Sequence[FileSlice], keys: Sequence[str]) -> list[FileSlice]:
    """Return the files of the segments that have some routing keys."""
    steps = [routing_steps(key.encode()) / STEPS for key in keys]
    return [s for s in slices if any(s.key_low <= at < s.key_high for at in steps)]


def places(
    settings: Settings, slices: Sequence[FileSlice], fields: list[Field], match: Matching,
    each: Each | None = None,
) -> dict[int, Offsets]:  # fmt: skip
    """Return per segment the offsets, ascending, of the events that match, of some files. It reads
    only the columns that the match looks at. `each`: what looks at each file; None: this process.
    """
    look = functools.partial(_offsets_in, to_read(fields), match)
    found = dict[int, list[Offsets]]()
    for part, answer in zip(slices, (each or here)(settings, look, slices), strict=True):
        if answer:
            found.setdefault(part.segment_id, []).append(_read(answer))
    return {segment: np.sort(np.concatenate(some)) for segment, some in found.items()}


def here(settings: Settings, look: Look, slices: Sequence[FileSlice]) -> list[str]:
    """Look at each file in this process."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda part: look(settings, part), slices))


def _offsets_in(schema: pa.Schema, match: Matching, settings: Settings, part: FileSlice) -> str:
    """Return the offsets of the events of a file that match, as a text; an empty one for none."""
    rows = read_rows(settings, part, schema, match.columns)
    offsets = rows["_offset"].filter(match.rows(rows)).to_numpy()
    if not len(offsets):
        return ""
    return b64encode(zlib.compress(np.diff(offsets, prepend=0).tobytes(), 1)).decode()


def _read(answer: str) -> Offsets:
    return np.cumsum(np.frombuffer(zlib.decompress(b64decode(answer)), np.int64))


def where(condition: str, fields: list[Field]) -> Matching:
    """Return what matches the events that fulfil a condition. Raises InvalidInput, without what is
    to be forgotten, for one that can't be computed: it is logged and recorded."""
    try:
        return fulfilling(condition, to_read(fields))
    except InvalidInput as error:
        names = [one["name"] for one in fields]
        error.sentence = without_values(error.sentence, condition, names)
        error.args = (error.code, error.sentence)
        raise


_REJECTED = ("row", "text")


_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]{1,3})?")


def _value(text: str) -> Decimal | str:
    """Return the number that a text is, or else the text."""
    return Decimal(text) if _NUMBER.fullmatch(text) else text


def in_rejected(columns: Sequence[str], keys: Sequence[str], *, texts: bool) -> Matching:
    """Return what matches rejected rows of some keys: those that have one in a column, where they
    are JSON with it, as the same text, or, unless the keys are `texts`, as an equal number; else
    those in which one stands as a word of its own, as it is or as JSON and CSV write it."""
    value: Callable[[str], Decimal | str] = str if texts else _value
    wanted, names = set(map(value, keys)), {column.lower() for column in columns}
    spelt = {one for key in keys if key for one in spellings(key)}
    some = "|".join(map(re.escape, sorted(spelt))) or "(?!)"  # which is nowhere
    word = re.compile(rf"(?<!\w)(?:{some})(?!\w)")

    def is_meant(row: str | None, fault: str | None) -> bool:
        try:
            read = json.loads(row or "", parse_int=str, parse_float=str)
        except ValueError:
            read = None
        of_name = {name.lower(): it for name, it in read.items()} if isinstance(read, dict) else {}
        if values := [of_name[name] for name in names if of_name.get(name) is not None]:
            return any(
                value(it if isinstance(it, str) else json.dumps(it)) in wanted for it in values
            )
        return any(word.search(text) for text in (row, fault) if text)

    def matching(rows: pa.Table) -> pa.Array:
        both = zip(*(rows[name].to_pylist() for name in _REJECTED), strict=True)
        return pa.array([is_meant(*one) for one in both], pa.bool_())

    return Matching(_REJECTED, matching)


def spellings(key: str) -> set[str]:
    """Return a key as it is, and as JSON and CSV write it within quotes."""
    escaped = (json.dumps(key, ensure_ascii=ascii)[1:-1] for ascii in (True, False))
    return {key, key.replace('"', '""'), *escaped}


def events_in(found: Mapping[int, Offsets]) -> int:
    """Return how many events were found."""
    return sum(len(offsets) for offsets in found.values())


def digest_of(found: Mapping[int, Offsets]) -> str:
    """Return a digest of the places of some events, which others in the same number do not have."""
    seen = hashlib.sha256()
    for segment, offsets in sorted(found.items()):
        if len(offsets):
            seen.update(f"{segment}:{len(offsets)}:".encode())
            seen.update(np.sort(offsets).astype("<i8").tobytes())
    return seen.hexdigest()[:32]


def plan(database: Database, stream_id: int) -> tuple[list[FileSlice], Columns]:
    """Return what `whole_files` does, in a snapshot of its own."""
    return database.snapshot(lambda c: whole_files(c, stream_id))
