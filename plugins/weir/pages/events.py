"""The events of a stream: the newest first, before a time, or of a routing key; and its hot keys.
They are data, so whoever may see that there is a stream may not yet see them."""

import json
import threading
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.controller.locks import read_stream
from weir.controller.missing import missing_between
from weir.controller.streams import schema_by_id
from weir.controller.times import parse_time
from weir.errors import Busy, InvalidInput
from weir.kernel.matching import routing_keys
from weir.kernel.schema import to_read
from weir.kernel.transforms import Computation
from weir.kernel.values import rows_of
from weir.model.clock import clock_time, to_clock
from weir.model.names import StreamName, stream_name
from weir.model.schema import show
from weir.model.segment import segment_name
from weir.pages.answering import Asked, Tagged
from weir.pages.browse import Place, Seen, browse

router = APIRouter(route_class=Tagged, tags=["events"])

MOST_COLUMNS = 40
LONGEST = 300  # characters of a value
SAMPLE = 20_000  # of the newest events, of which the hot keys are counted
MOST_KEYS = 20
AT_ONCE = 2  # people who look, in one API server

_looking = threading.BoundedSemaphore(AT_ONCE)


class Column(BaseModel):
    """A column, with its type in words."""

    name: str
    type: str


class Event(BaseModel):
    """An event. `values`: by column, as text; null for a value that is missing. `cut`: of values
    that are longer than what is here, their whole lengths, by the index of the column."""

    segment: str
    offset: int
    committed_at: datetime
    values: list[str | None]
    cut: dict[int, int]


class Events(BaseModel):
    """Events, the newest first. `next`: what to give as `before` for those before them. `looked`:
    how many events were looked at for them, back to `since`. `hidden`: columns that are not here.
    `missing`: what was truncated."""

    columns: list[Column]
    hidden: list[str]
    routing_key: str
    events: list[Event]
    next: str | None
    looked: int
    since: datetime | None
    missing: str | None


class HotKey(BaseModel):
    """A routing key and how many of the sampled events it has."""

    key: str | None
    events: int


class HotKeys(BaseModel):
    """The routing keys with most of the newest events: `sampled` of them, since `since`."""

    keys: list[HotKey]
    sampled: int
    distinct: int
    since: datetime | None


@router.get("/streams/{scope}/{name}/events")
def list_events(
    request: Request,
    asked: Asked,
    scope: str,
    name: str,
    conn_id: str = "",
    before: Annotated[str, Query(max_length=40, description="`next` of the page before")] = "",
    at: Annotated[str, Query(max_length=40, description="a time: what was appended by then")] = "",
    key: Annotated[str | None, Query(description="a routing key")] = None,
    condition: Annotated[
        str, Query(max_length=2000, description="which events, by columns: amount > 10")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
) -> Events:
    """Return the newest events, or those of a key or a condition among the newest. It reads the
    ends of a few Parquet files."""
    stream = stream_name(f"{scope}/{name}")
    settings = request.app.state.settings_of(conn_id)
    with one_of_few():
        seen = browse(
            asked, settings, stream, limit, before=_place(before, at), key=key,
            condition=condition.strip(), most=MOST_COLUMNS,
        )  # fmt: skip
        lacks = None
        if not seen.table.num_rows and not before and not at:
            lacks = asked.snapshot(lambda c: missing_between(c, stream, None, None, empty=True))
        return _answer(seen, str(lacks) if lacks else None)


@router.get("/streams/{scope}/{name}/keys")
def list_hot_keys(
    request: Request, asked: Asked, scope: str, name: str, conn_id: str = ""
) -> HotKeys:
    """Return the routing keys with most of the newest events, a sample of them."""
    stream = stream_name(f"{scope}/{name}")
    settings = request.app.state.settings_of(conn_id)
    with one_of_few():
        keys = asked.snapshot(lambda c: _keys_of(c, stream))
        seen = browse(asked, settings, stream, SAMPLE, columns=keys.columns, sample=True)
        counts = Counter(_texts(keys.texts(seen.table).values))
        clocks = seen.table["_clock"].to_pylist()
        return HotKeys(
            keys=[HotKey(key=_cut(k)[0], events=n) for k, n in counts.most_common(MOST_KEYS)],
            sampled=len(clocks),
            distinct=len(counts),
            since=clock_time(clocks[-1]) if clocks else None,
        )


@contextmanager
def one_of_few() -> Iterator[None]:
    """Let a few people look at once: a thread and the memory of the API server are everybody's."""
    if not _looking.acquire(blocking=False):
        raise Busy("lock_held", "others are looking through events; try again in a moment.")
    try:
        yield
    finally:
        _looking.release()


def _keys_of(connection: Connection, stream: StreamName) -> Computation:
    row = read_stream(connection, stream)
    schema = to_read(schema_by_id(connection, row.stream_id))
    return routing_keys(stream, row.configuration.routing_key, schema)


def _place(before: str, at: str) -> Place | None:
    if before:
        clock, _, passed = before.partition(".")
        if not all(one.isascii() and one.isdigit() and len(one) < 19 for one in (clock, passed)):
            raise InvalidInput("argument_invalid", "before is not `next` of a page before.")
        if int(passed) > SAMPLE:
            raise InvalidInput(
                "argument_invalid",
                "so many events of one append can't be passed here; read them with a program.",
            )
        return Place(int(clock), int(passed))
    return Place(to_clock(parse_time(at))) if at else None


def _answer(seen: Seen, missing: str | None) -> Events:
    types = {field["name"]: show(field["type"]) for field in seen.fields}
    names = [n for n in seen.table.column_names if n not in ("_segment", "_offset", "_clock")]
    events = []
    for row in rows_of(seen.table):
        shown = [_cut(text_of(row[name])) for name in names]
        events.append(
            Event(
                segment=segment_name(row["_segment"]),
                offset=row["_offset"],
                committed_at=clock_time(row["_clock"]),
                values=[text for text, _ in shown],
                cut={i: length for i, (_, length) in enumerate(shown) if length},
            )
        )
    return Events(
        columns=[Column(name=name, type=types[name]) for name in names],
        hidden=[name for name in types if name not in names],
        routing_key=seen.routing_key,
        events=events,
        next=f"{seen.next.clock}.{seen.next.passed}" if seen.next else None,
        looked=seen.looked,
        since=clock_time(seen.since) if seen.since is not None else None,
        missing=missing,
    )


def _texts(column: pa.ChunkedArray) -> list[str | None]:
    return [text_of(row["key"]) for row in rows_of(pa.table({"key": column}))]


def _cut(text: str | None) -> tuple[str | None, int]:
    """Return the beginning of a text, and how long all of it is if that is not all; else 0."""
    if text is None or len(text) <= LONGEST:
        return text, 0
    return text[:LONGEST], len(text)


def text_of(value: object) -> str | None:
    """Return a value as a person reads it: bytes in hexadecimal, decimals with all their digits,
    times in ISO 8601, nested ones as JSON."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return f"0x{value.hex()}"
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, (dict, list, tuple)):
        return json.dumps(value, default=_inner, ensure_ascii=False)
    return repr(value)


def _inner(value: object) -> str | None:
    """Return a value within a nested one."""
    return b64encode(value).decode() if isinstance(value, bytes) else text_of(value)
