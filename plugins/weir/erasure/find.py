"""Find the events of routing keys with pyarrow, where a column has the keys."""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection

from weir.arrow.read import read_rows
from weir.controller.read_plan import FileSlice, slices_of_stream
from weir.database.connection import Database
from weir.erasure.columns import Columns
from weir.erasure.records import Offsets
from weir.kernel.schema import to_read
from weir.model.key_space import STEPS, routing_steps
from weir.model.schema import Field
from weir.settings import Settings

Matching = Callable[[pa.Table], pa.Array]  # of rows with some columns: which of them are meant


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
    settings: Settings, slices: Sequence[FileSlice], fields: list[Field], columns: Sequence[str],
    matching: Matching,
) -> dict[int, Offsets]:  # fmt: skip
    """Return per segment the offsets, ascending, of the events that match, of some files. It reads
    only the columns that it matches."""
    schema, found = to_read(fields), dict[int, list[Offsets]]()
    for part in slices:
        rows = read_rows(settings, part, schema, columns)
        offsets = rows["_offset"].filter(matching(rows)).to_numpy()
        if len(offsets):
            found.setdefault(part.segment_id, []).append(offsets)
    return {segment: np.sort(np.concatenate(some)) for segment, some in found.items()}


def has_texts(kind: pa.DataType) -> bool:
    """Return whether pyarrow writes the values of a type as a routing key has them."""
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)
        or pa.types.is_date32(kind)
    )  # fmt: skip


def in_columns(columns: Sequence[str], keys: Sequence[str]) -> Matching:
    """Return what matches rows of which a column, as text, is one of some keys."""
    wanted = pa.array(keys, pa.string())

    def matching(rows: pa.Table) -> pa.Array:
        same = (pc.is_in(rows[name].cast(pa.string()), value_set=wanted) for name in columns)
        return functools.reduce(pc.or_, (pc.fill_null(one, False) for one in same))

    return matching


REJECTED = ("row", "text")


def in_rejected(columns: Sequence[str], keys: Sequence[str]) -> Matching:
    """Return what matches rejected rows of some keys: those that have one in a column, where they
    are JSON with it; else those in which one stands as a word of its own, as it is or as JSON and
    CSV write it."""
    wanted, names = set(keys), {column.lower() for column in columns}
    spelt = {one for key in keys if key for one in spellings(key)}
    some = "|".join(map(re.escape, sorted(spelt))) or "(?!)"  # which is nowhere
    word = re.compile(rf"(?<!\w)(?:{some})(?!\w)")

    def is_meant(row: str | None, fault: str | None) -> bool:
        try:
            read = json.loads(row or "")
        except ValueError:
            read = None
        of_name = {name.lower(): it for name, it in read.items()} if isinstance(read, dict) else {}
        if values := [of_name[name] for name in names if of_name.get(name) is not None]:
            texts = (it if isinstance(it, str) else json.dumps(it) for it in values)
            return any(one in wanted for one in texts)
        return any(word.search(text) for text in (row, fault) if text)

    def matching(rows: pa.Table) -> pa.Array:
        both = zip(*(rows[name].to_pylist() for name in REJECTED), strict=True)
        return pa.array([is_meant(*one) for one in both], pa.bool_())

    return matching


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
