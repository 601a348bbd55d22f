"""Who builds which version of a store, and from what. Made by `make queries` from sql/queries/adjunct/builds.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.controller.queries import Cut

BEGIN = text(
    """WITH given AS (
    UPDATE adjunct_store SET next_version = next_version + 1 WHERE store_id = :store_id
    RETURNING next_version - 1 AS version
)
INSERT INTO adjunct_version (store_id, version, definition, state, kind, base, from_cut, cut,
    clock, complete_since, lost_events, builder, lease_until, started_at, code)
SELECT :store_id, g.version, :definition, 'building', :kind, :base, CAST(:from_cut AS jsonb),
    CAST(:cut AS jsonb), :clock,
    CASE WHEN CAST(:base AS bigint) IS NULL THEN :since ELSE (
        SELECT b.complete_since FROM adjunct_version b
        WHERE b.store_id = :store_id AND b.version = :base) END,
    :lost, :builder, clock_timestamp() + :lease * interval '1 second', clock_timestamp(), :code
FROM given g RETURNING version"""
)


def begin(
    connection: Connection,
    *,
    store_id: int,
    definition: int,
    kind: str,
    base: int | None,
    from_cut: str,
    cut: str,
    clock: int,
    since: int | None,
    lost: int,
    builder: str,
    lease: float,
    code: str | None,
) -> int:
    """Record a version that is being built, and return its number."""
    result = connection.execute(
        BEGIN,
        {
            "store_id": store_id,
            "definition": definition,
            "kind": kind,
            "base": base,
            "from_cut": from_cut,
            "cut": cut,
            "clock": clock,
            "since": since,
            "lost": lost,
            "builder": builder,
            "lease": lease,
            "code": code,
        },
    )
    value: int = result.scalar_one()
    return value


TARGET = text(
    """SELECT CASE WHEN CAST(:cut AS jsonb) IS NULL THEN tail_cut(:stream_id)
        ELSE readable_cut(:stream_id, CAST(:cut AS jsonb), head) END AS cut,
    coalesce(:clock, CASE WHEN CAST(:cut AS jsonb) IS NOT NULL
        THEN clock_after(:stream_id, readable_cut(:stream_id, CAST(:cut AS jsonb), head)) - 1 END,
        :last) AS clock
FROM stream WHERE stream_id = :stream_id"""
)


class Target(NamedTuple):
    """A row of `target`."""

    cut: Cut
    clock: int


def target(
    connection: Connection, *, cut: str | None, stream_id: int, clock: int | None, last: int
) -> Target:
    """Return the cut to be complete to, at least the head, and its clock."""
    result = connection.execute(
        TARGET, {"cut": cut, "stream_id": stream_id, "clock": clock, "last": last}
    )
    row = result.one()
    return Target._make(row)


KEYS = text(
    """SELECT key, key_type FROM adjunct_definition
WHERE store_id = :store_id AND definition = :definition"""
)


class Keys(NamedTuple):
    """A row of `keys`."""

    key: str
    key_type: str


def keys(connection: Connection, *, store_id: int, definition: int) -> Keys:
    """Return how a definition makes keys."""
    result = connection.execute(KEYS, {"store_id": store_id, "definition": definition})
    row = result.one()
    return Keys._make(row)


BUILDING = text(
    """SELECT version, attempt, kind, base, from_cut, cut, clock, code, definition, builder,
    CAST(extract(epoch FROM lease_until - clock_timestamp()) AS float8) AS leased
FROM adjunct_version WHERE store_id = :store_id AND state = 'building'"""
)


class Building(NamedTuple):
    """A row of `building`."""

    version: int
    attempt: int
    kind: str
    base: int | None
    from_cut: Cut
    cut: Cut
    clock: int
    code: str | None
    definition: int
    builder: str
    leased: float


def building(connection: Connection, *, store_id: int) -> Building | None:
    """Return the version that is being built."""
    result = connection.execute(BUILDING, {"store_id": store_id})
    row = result.one_or_none()
    return None if row is None else Building._make(row)


ENTERED = text(
    """SELECT start_cut FROM reader_group_stream WHERE group_id = :group_id AND stream_id = :stream_id"""
)


def entered(connection: Connection, *, group_id: int, stream_id: int) -> Cut:
    """Return where a group entered a stream."""
    result = connection.execute(ENTERED, {"group_id": group_id, "stream_id": stream_id})
    value: Cut = result.scalar_one()
    return value


EVENTS_BETWEEN = text(
    """SELECT b.events - a.events FROM size_till(CAST(:stream_id AS bigint), CAST(:start AS jsonb)) a
CROSS JOIN size_till(CAST(:stream_id AS bigint), CAST(:end AS jsonb)) b"""
)


def events_between(connection: Connection, *, stream_id: int, start: str, end: str) -> int:
    """Return how many events lie between two cuts."""
    result = connection.execute(
        EVENTS_BETWEEN, {"stream_id": stream_id, "start": start, "end": end}
    )
    value: int = result.scalar_one()
    return value


ADVANCE = text(
    """UPDATE adjunct_version SET cut = CAST(:cut AS jsonb), clock = greatest(clock, :clock)
WHERE store_id = :store_id AND version = :version"""
)


def advance(connection: Connection, *, cut: str, clock: int, store_id: int, version: int) -> None:
    """Move the cut of a version forward."""
    result = connection.execute(
        ADVANCE, {"cut": cut, "clock": clock, "store_id": store_id, "version": version}
    )
    result.close()


AGAIN = text(
    """WITH dead AS (
    UPDATE adjunct_store s SET failed_at = clock_timestamp(),
        error = format('%s ended without a word while it built version %s (%s times '
            || 'in a row by now); was it killed, or its memory used up?',
            v.builder, v.version, v.silent_attempts)
    FROM adjunct_version v WHERE s.store_id = :store_id AND v.store_id = :store_id AND v.version = :version
        AND v.silent_attempts > 0
)
UPDATE adjunct_version SET attempt = attempt + 1, builder = :builder,
    silent_attempts = silent_attempts + 1,
    lease_until = clock_timestamp() + :lease * interval '1 second'
WHERE store_id = :store_id AND version = :version"""
)


def again(
    connection: Connection, *, store_id: int, version: int, builder: str, lease: float
) -> None:
    """Begin another attempt at a version."""
    result = connection.execute(
        AGAIN, {"store_id": store_id, "version": version, "builder": builder, "lease": lease}
    )
    result.close()


ABANDON = text(
    """UPDATE adjunct_version SET state = 'abandoned', lease_until = NULL,
    ended_at = clock_timestamp()
WHERE store_id = :store_id AND version = :version"""
)


def abandon(connection: Connection, *, store_id: int, version: int) -> None:
    """Abandon a version that is being built."""
    result = connection.execute(ABANDON, {"store_id": store_id, "version": version})
    result.close()


ATTEMPT_OF = text(
    """SELECT attempt FROM adjunct_version WHERE store_id = :store_id AND version = :version"""
)


def attempt_of(connection: Connection, *, store_id: int, version: int) -> int:
    """Return the present attempt at a version."""
    result = connection.execute(ATTEMPT_OF, {"store_id": store_id, "version": version})
    value: int = result.scalar_one()
    return value


DISCARD = text(
    """INSERT INTO garbage (root, path, stream_id, reason)
VALUES ('', :folder, NULL, 'fenced') ON CONFLICT (root, path) DO NOTHING"""
)


def discard(connection: Connection, *, folder: str) -> None:
    """Make garbage of a folder."""
    result = connection.execute(DISCARD, {"folder": folder})
    result.close()


TO_BUILD = text(
    """SELECT name, code, moved FROM stores_to_build(CAST(:names AS text[]))
ORDER BY silent_attempts, store_id"""
)


class ToBuild(NamedTuple):
    """A row of `to_build`."""

    name: str
    code: str | None
    moved: bool


def to_build(connection: Connection, *, names: Sequence[str] | None) -> list[ToBuild]:
    """Return the stores that may have to be built, and those with functions, those that died last."""
    result = connection.execute(TO_BUILD, {"names": None if names is None else list(names)})
    return [ToBuild._make(row) for row in result]
