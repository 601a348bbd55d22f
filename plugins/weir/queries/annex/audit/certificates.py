"""What the audit asks of certificates. Made by `make queries` from sql/annex/audit/queries/certificates.sql."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

SIGNED = text(
    """SELECT r.request_id, r.stream_name, r.certificate, (
    SELECT k.public_key FROM signing_key k
    WHERE k.key_number::text = r.certificate ->> 'key_number') AS public_key,
    (SELECT coalesce(jsonb_agg(jsonb_build_array(
            e.erasure_number, e.stream_name, e.events, e.segments)), '[]')
     FROM erasure e WHERE e.asked ->> 'request' = r.request_id) AS erased
FROM erasure_request r WHERE r.certificate IS NOT NULL
ORDER BY r.request_id"""
)


class Signed(NamedTuple):
    """A certificate, and what it must say."""

    request_id: str
    stream_name: str
    certificate: dict[str, Any]
    public_key: bytes | None
    erased: list[list[Any]]


def signed(connection: Connection) -> list[Signed]:
    """Return each certificate, the key by which it says that it is signed, and what was erased."""
    result = connection.execute(SIGNED)
    return [Signed._make(row) for row in result]
