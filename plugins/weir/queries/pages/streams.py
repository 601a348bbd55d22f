"""The list of streams. Made by `make queries` from sql/queries/pages/streams.sql."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel
from sqlalchemy import Connection, text

FOUND = text(
    """WITH found AS MATERIALIZED (
    SELECT c.stream, CASE :sort WHEN 'changed' THEN s.last_clock WHEN 'created' THEN s.created_at
        ELSE '-infinity' END AS at
    FROM weir.stream_configuration c JOIN weir.stream_state s USING (stream)
    WHERE (:search = '' OR strpos(c.stream, lower(:search)) > 0)
      AND (:scope = '' OR starts_with(c.stream, :scope || '/'))
      AND (:tag = '' OR c.tags @> ARRAY[CAST(:tag AS text)])
      AND (:owner = '' OR c.owner = :owner)
      AND (:state = '' OR s.state = :state))
SELECT (SELECT count(*) FROM found) AS total, date_trunc('minute', statement_timestamp()) AS now,
    array(SELECT f.stream FROM found f
          WHERE (f.at, CAST(:name AS text)) < (CAST(:at AS timestamptz), f.stream)
          ORDER BY f.at DESC, f.stream LIMIT CAST(:limit AS bigint) + 1) AS names"""
)


class Found(BaseModel):
    """A row of `found`."""

    total: int
    now: datetime
    names: list[str]


def found(
    connection: Connection,
    *,
    sort: str,
    search: str,
    scope: str,
    tag: str,
    owner: str,
    state: str,
    name: str,
    at: str,
    limit: int,
) -> Found:
    """Return a page of the names of streams, one more than `limit`, and how many there are in all. Now is a minute's, so that what has not changed has the same ETag. Streams are in the order of a time, the newest first, and of their names; `at` may be infinity."""
    result = connection.execute(
        FOUND,
        {
            "sort": sort,
            "search": search,
            "scope": scope,
            "tag": tag,
            "owner": owner,
            "state": state,
            "name": name,
            "at": at,
            "limit": limit,
        },
    )
    row = result.one()
    return Found(**row._mapping)


NUMBERS = text(
    """SELECT s.stream, s.state, s.created_at, s.last_clock AS changed_at, s.routing_key,
    s.events_retained AS events, s.bytes_retained AS bytes, s.events_appended AS appended,
    CASE WHEN s.state = 'active' THEN (SELECT count(*) FROM jsonb_object_keys(s.tail)) ELSE 0 END
        AS segments,
    c.tags, c.owner, c.retention, ARRAY[extract(epoch FROM c.retain_min_age)::bigint,
        extract(epoch FROM c.retain_max_age)::bigint, c.retain_min_bytes, c.retain_max_bytes] AS limits
FROM weir.streams s JOIN weir.stream_configuration c USING (stream)
WHERE s.stream = ANY(:names)"""
)


class Numbers(BaseModel):
    """A stream in numbers."""

    stream: str
    state: Literal["active", "sealed"]
    created_at: datetime
    changed_at: datetime
    routing_key: str
    events: int
    bytes: int
    appended: int
    segments: int
    tags: list[str]
    owner: str | None
    retention: str
    limits: list[int | None]


def numbers(connection: Connection, *, names: Sequence[str]) -> list[Numbers]:
    """Return streams in numbers. `limits`: of retention, age in seconds and bytes, each at least and at most."""
    result = connection.execute(NUMBERS, {"names": list(names)})
    return [Numbers(**row._mapping) for row in result]


SCOPES = text(
    """SELECT array(SELECT DISTINCT split_part(stream, '/', 1) FROM weir.stream_state ORDER BY 1) AS scopes,
    array(SELECT DISTINCT unnest(tags) FROM weir.stream_configuration ORDER BY 1) AS tags,
    array(SELECT DISTINCT owner FROM weir.stream_configuration
          WHERE owner IS NOT NULL ORDER BY 1) AS owners"""
)


class Scopes(BaseModel):
    """What streams can be filtered by."""

    scopes: list[str]
    tags: list[str]
    owners: list[str]


def scopes(connection: Connection) -> Scopes:
    """Return the scopes, tags and owners that there are."""
    result = connection.execute(SCOPES)
    row = result.one()
    return Scopes(**row._mapping)
