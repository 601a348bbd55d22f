"""The certificate of an erasure: a JSON document that is signed once no file has the events."""

import base64
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection, text

from weir.annex.erasure.requests import waits_for
from weir.database.connection import Database

_UTC = """to_char({} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""
_DOCUMENT = text(
    f"""SELECT jsonb_build_object(
        'certificate', 1,
        'installation', (SELECT i.installation_id FROM installation i),
        'request', r.request_id, 'stream', r.stream_name, 'requested_by', r.requested_by,
        'reason', r.reason, 'asked', r.asked, 'asked_at', {_UTC.format("r.asked_at")},
        'done_at', {_UTC.format("r.done_at")}, 'signed_at', {_UTC.format("clock_timestamp()")},
        'searched', r.searched, 'stores', r.stores,
        'outputs', (SELECT coalesce(jsonb_object_agg(o.key, (
                SELECT sum(n.value::bigint) FROM jsonb_each_text(o.value) n)), '{{}}')
            FROM jsonb_each(r.outputs) o), 'remains', r.remains,
        'erased', (SELECT coalesce(jsonb_agg(jsonb_build_object(
                'erasure', e.erasure_number, 'stream', e.stream_name,
                'erased_at', {_UTC.format("e.erased_at")}, 'events', e.events,
                'files', e.files, 'segments', e.segments,
                'digest_before', e.digest_before::text, 'digest_after', e.digest_after::text)
            ORDER BY e.erasure_number), '[]')
            FROM erasure e WHERE e.asked ->> 'request' = r.request_id)) AS document
    FROM erasure_request r WHERE r.request_id = :id"""  # noqa: S608 - constants
)
_WAITING = text(
    """SELECT r.request_id, array(SELECT (o ->> 'stream_id')::bigint
        FROM jsonb_array_elements(r.searched) o) AS streams
    FROM erasure_request r
    WHERE r.certificate IS NULL AND r.done_at IS NOT NULL ORDER BY r.done_at"""
)
_UNFOUNDED = text("SELECT erasure_is_unfounded(:id)")
_MAY_SIGN = text("SELECT has_column_privilege('signing_key', 'private_key', 'SELECT')")


def signed_bytes(document: dict[str, Any]) -> bytes:
    """Return the bytes of a document that are signed: JSON with sorted keys and without blanks."""
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def sign_if_gone(
    database: Database, request_id: str, streams: list[int], grace: float
) -> list[str]:
    """Sign the certificate of a request unless files with the events are left. Returns what it
    waits for: nothing if it is signed. A login that may not sign leaves it to `weir_upkeep`."""
    return database.transaction(lambda c: _sign_if_gone(c, request_id, streams, grace))


def sign_waiting(database: Database, grace: float) -> list[str]:
    """Sign the certificates of all requests of which no file is left by now. Returns which."""
    waiting = database.transaction(lambda c: c.execute(_WAITING).all())
    return [
        row.request_id
        for row in waiting
        if not sign_if_gone(database, row.request_id, list(row.streams), grace)
    ]


def _sign_if_gone(
    connection: Connection, request_id: str, streams: list[int], grace: float
) -> list[str]:
    if waits := waits_for(connection, streams, grace):
        return waits
    if not connection.execute(_MAY_SIGN).scalar_one():
        return ["a run of upkeep, which signs it"]
    if connection.execute(_UNFOUNDED, {"id": request_id}).scalar_one():
        return ["a person: its record is not what the compactions and holes say; run weir audit"]
    number, key = _key(connection)
    document = connection.execute(_DOCUMENT, {"id": request_id}).scalar_one()
    certificate = {
        "document": document,
        "key_number": number,
        "public_key": _text(key.public_key().public_bytes_raw()),
        "signature": _text(key.sign(signed_bytes(document))),
    }
    connection.execute(
        text("SELECT sign_erasure(:id, CAST(:certificate AS jsonb))"),
        {"id": request_id, "certificate": json.dumps(certificate)},
    )
    return []


def _key(connection: Connection) -> tuple[int, Ed25519PrivateKey]:
    """Return the newest key of the installation; make the first one."""
    newest = text(
        "SELECT key_number, private_key FROM signing_key ORDER BY key_number DESC LIMIT 1"
    )
    row = connection.execute(newest).one_or_none()
    if row is None:
        made = Ed25519PrivateKey.generate()
        connection.execute(
            text(
                """INSERT INTO signing_key (public_key, private_key) VALUES (:public, :private)
                ON CONFLICT (key_number) DO NOTHING"""
            ),
            {
                "public": made.public_key().public_bytes_raw(),
                "private": made.private_bytes_raw(),
            },
        )
        row = connection.execute(newest).one()
    return row.key_number, Ed25519PrivateKey.from_private_bytes(bytes(row.private_key))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
