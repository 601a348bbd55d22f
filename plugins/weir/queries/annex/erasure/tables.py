"""What the pages show of certificates. Made by `make queries` from sql/annex/erasure/queries/tables.sql."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

CERTIFICATES = text(
    """SELECT asked_at, stream, request, requested_by, reason, events, streams, state, waits_for, certified_at, certificate
FROM certificates
WHERE request IN (
    SELECT r.request_id FROM erasure_request r WHERE (:stream = '' OR r.stream_name = :stream)
    ORDER BY r.asked_at DESC, r.request_id LIMIT :most OFFSET CAST(:passed AS bigint))
ORDER BY asked_at DESC, request"""
)


class CertificateShown(NamedTuple):
    """An erasure, and its certificate."""

    asked_at: datetime
    stream: str
    request: str
    requested_by: str
    reason: str
    events: int
    streams: int
    state: str
    waits_for: list[str] | None
    certified_at: datetime | None
    certificate: dict[str, Any] | None


def certificates(
    connection: Connection, *, stream: str, most: int, passed: int
) -> list[CertificateShown]:
    """Return the erasures that people asked for, the newest first."""
    result = connection.execute(CERTIFICATES, {"stream": stream, "most": most, "passed": passed})
    return [CertificateShown._make(row) for row in result]
