"""What the certificate of an erasure says, and the key that signs it. Made by `make queries` from sql/annex/erasure/queries/certificate.sql."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection, text

DOCUMENT = text(
    """SELECT jsonb_build_object(
    'certificate', 1,
    'installation', (SELECT i.installation_id FROM installation i),
    'request', r.request_id, 'stream', r.stream_name, 'requested_by', r.requested_by,
    'reason', r.reason, 'asked', r.asked,
    'asked_at', to_char(r.asked_at AT TIME ZONE 'UTC', f.iso),
    'done_at', to_char(r.done_at AT TIME ZONE 'UTC', f.iso),
    'signed_at', to_char(clock_timestamp() AT TIME ZONE 'UTC', f.iso),
    'searched', r.searched, 'stores', r.stores,
    'outputs', (SELECT coalesce(jsonb_object_agg(o.key, (
            SELECT sum(n.value::bigint) FROM jsonb_each_text(o.value) n)), '{}')
        FROM jsonb_each(r.outputs) o), 'remains', r.remains,
    'erased', (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'erasure', e.erasure_number, 'stream', e.stream_name,
            'erased_at', to_char(e.erased_at AT TIME ZONE 'UTC', f.iso), 'events', e.events,
            'files', e.files, 'segments', e.segments,
            'digest_before', e.digest_before::text, 'digest_after', e.digest_after::text)
        ORDER BY e.erasure_number), '[]')
        FROM erasure e WHERE e.asked ->> 'request' = r.request_id)) AS document
FROM erasure_request r CROSS JOIN (VALUES ('YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS f (iso)
WHERE r.request_id = :id"""
)


def document(connection: Connection, *, id: str) -> dict[str, Any]:
    """Return the document of a request, without a signature."""
    result = connection.execute(DOCUMENT, {"id": id})
    value: dict[str, Any] = result.scalar_one()
    return value


WAITING = text("""SELECT request_id, streams FROM certificates_to_sign()""")


class Waiting(NamedTuple):
    """A row of `waiting`."""

    request_id: str
    streams: list[int]


def waiting(connection: Connection) -> list[Waiting]:
    """Return the requests that are done and have no certificate yet, with the streams they searched."""
    result = connection.execute(WAITING)
    return [Waiting._make(row) for row in result]


IS_UNFOUNDED = text("""SELECT erasure_is_unfounded(:id)""")


def is_unfounded(connection: Connection, *, id: str) -> bool:
    """Return whether the record of a request is not what the compactions and holes say."""
    result = connection.execute(IS_UNFOUNDED, {"id": id})
    value: bool = result.scalar_one()
    return value


MAY_SIGN = text("""SELECT has_column_privilege('signing_key', 'private_key', 'SELECT')""")


def may_sign(connection: Connection) -> bool:
    """Return whether this login may sign."""
    result = connection.execute(MAY_SIGN)
    value: bool = result.scalar_one()
    return value


NEWEST_KEY = text(
    """SELECT key_number, private_key FROM signing_key ORDER BY key_number DESC LIMIT 1"""
)


class NewestKey(NamedTuple):
    """A row of `newest_key`."""

    key_number: int
    private_key: bytes


def newest_key(connection: Connection) -> NewestKey | None:
    """Return the newest key of the installation."""
    result = connection.execute(NEWEST_KEY)
    row = result.one_or_none()
    return None if row is None else NewestKey._make(row)


ADD_KEY = text(
    """INSERT INTO signing_key (public_key, private_key) VALUES (:public, :private)
ON CONFLICT (key_number) DO NOTHING"""
)


def add_key(connection: Connection, *, public: bytes, private: bytes) -> None:
    """Record the first key of the installation, unless somebody else has."""
    result = connection.execute(ADD_KEY, {"public": public, "private": private})
    result.close()


SIGN = text("""SELECT sign_erasure(:id, CAST(:certificate AS jsonb))""")


def sign(connection: Connection, *, id: str, certificate: str) -> None:
    """Record the certificate of a request."""
    result = connection.execute(SIGN, {"id": id, "certificate": certificate})
    result.close()


WAITS_FOR = text("""SELECT * FROM erasure_waits(CAST(:streams AS bigint[]), :grace)""")


def waits_for(connection: Connection, *, streams: Sequence[int], grace: float) -> list[str]:
    """Return what still keeps files with erased events of some streams."""
    result = connection.execute(WAITS_FOR, {"streams": list(streams), "grace": grace})
    return [row[0] for row in result]
