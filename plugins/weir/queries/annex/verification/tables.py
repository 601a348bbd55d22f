"""What the pages show of damage. Made by `make queries` from sql/annex/verification/queries/tables.sql."""

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import Connection, text

DAMAGE = text(
    """SELECT since, stream, kind, what, advice, path, seen_at FROM damage
WHERE (:stream = '' OR stream = :stream) ORDER BY since DESC, path LIMIT :most OFFSET CAST(:passed AS bigint)"""
)


class DamageShown(NamedTuple):
    """What is not as recorded."""

    since: datetime
    stream: str | None
    kind: str
    what: str
    advice: str
    path: str
    seen_at: datetime


def damage(connection: Connection, *, stream: str, most: int, passed: int) -> list[DamageShown]:
    """Return what was found that is not as recorded, the newest first."""
    result = connection.execute(DAMAGE, {"stream": stream, "most": most, "passed": passed})
    return [DamageShown._make(row) for row in result]


VERIFIED = text(
    """SELECT stream, looked_at, completed_at, damage, proven_until FROM verified
WHERE CASE :stream WHEN '' THEN stream > :after ELSE stream = :stream END
ORDER BY stream LIMIT :most"""
)


class VerifiedShown(NamedTuple):
    """When a stream was compared with what was recorded."""

    stream: str
    looked_at: datetime | None
    completed_at: datetime | None
    damage: int
    proven_until: datetime | None


def verified(connection: Connection, *, stream: str, after: str, most: int) -> list[VerifiedShown]:
    """Return when streams were looked at."""
    result = connection.execute(VERIFIED, {"stream": stream, "after": after, "most": most})
    return [VerifiedShown._make(row) for row in result]
