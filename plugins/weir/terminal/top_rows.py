"""What a screen of `weir top` shows, and the one statement that asks for it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from weir.database.connection import Database

# What a screen can be sorted by. All but lag find their rows by names and times alone.
ORDERS = {
    "streams": {"change": "last_clock DESC, stream", "name": "stream"},
    "groups": {"lag": "waiting DESC, unread_events DESC, reader_group, stream",
               "name": "reader_group, stream"},
}  # fmt: skip
_STREAMS = """WITH found AS MATERIALIZED (
        SELECT stream, last_clock FROM stream_state WHERE strpos(stream, lower(:search)) > 0
    ), page AS MATERIALIZED (SELECT * FROM found ORDER BY {order} OFFSET :skip LIMIT :most)
    SELECT f.total, statement_timestamp() AS now, x.*
    FROM (SELECT count(*) AS total FROM found) f LEFT JOIN LATERAL (
        SELECT s.stream, s.state, s.events_retained AS events, s.bytes_retained AS bytes,
            s.events_appended AS appended, s.last_clock,
            greatest(statement_timestamp() - s.last_clock, interval '0') AS unchanged,
            CASE WHEN s.state = 'active' THEN (SELECT count(*) FROM jsonb_object_keys(s.tail))
                 ELSE 0 END AS segments,
            l.groups, l.unread_events, l.waiting, l.reader_group
        FROM page p JOIN streams s USING (stream) CROSS JOIN LATERAL (
            SELECT count(*) AS groups, coalesce(max(l.unread_events), 0) AS unread_events,
                max(l.waiting) AS waiting,
                (array_agg(l.reader_group ORDER BY l.waiting DESC, l.reader_group)
                    FILTER (WHERE l.unread_events > 0))[1] AS reader_group
            FROM lag l WHERE l.stream = p.stream) l) x ON true
    ORDER BY {order}"""
_GROUPS = """WITH found AS MATERIALIZED (
        SELECT reader_group, stream, unread_events, unread_bytes, waiting, lost_events
        FROM lag WHERE strpos(lower(reader_group || ' ' || stream), lower(:search)) > 0
    ), page AS MATERIALIZED (SELECT * FROM found ORDER BY {order} OFFSET :skip LIMIT :most)
    SELECT f.total, statement_timestamp() AS now, p.*
    FROM (SELECT count(*) AS total FROM found) f LEFT JOIN page p ON true ORDER BY {order}"""
MOST = 500  # rows of a screen


@dataclass(frozen=True)
class View:
    """What is shown: streams or groups, in which order, of which names, from which row on."""

    what: str
    order: str
    search: str = ""
    skip: int = 0


@dataclass(frozen=True)
class Answer:
    """What the database said to a question, or why it did not."""

    view: View
    rows: Sequence[dict[str, Any]] = ()
    total: int = 0
    at: datetime | None = None
    took: float = 0.0
    failed: str = ""


def ask(database: Database, view: View, most: int) -> Answer:
    """Return a screen of rows, by one statement."""
    statement = _STREAMS if view.what == "streams" else _GROUPS
    asked = text(statement.format(order=ORDERS[view.what][view.order]))
    given = {"search": view.search, "skip": view.skip, "most": most}
    begun = time.monotonic()
    found = database.snapshot(lambda c: c.execute(asked, given).all())
    took = time.monotonic() - begun
    rows = [{k: v for k, v in row._mapping.items() if k not in ("total", "now", "last_clock")}
            for row in found if row.stream is not None]  # fmt: skip
    return Answer(view, rows, found[0].total, found[0].now, took)
