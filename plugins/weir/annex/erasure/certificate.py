"""The certificate of an erasure: a JSON document that is signed once no file has the events."""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import Connection

from weir.annex.erasure.asked import AskedOf
from weir.database.connection import Database
from weir.queries.annex.erasure import certificate as sql


class ErasedFrom(TypedDict):
    """How many events were erased from a stream, among what a certificate says of it."""

    stream: str
    events: int


class Document(TypedDict):
    """What a certificate says, as far as Weir reads it again."""

    request: str
    stream: str
    asked_at: str
    reason: NotRequired[str]
    asked: AskedOf
    erased: Sequence[ErasedFrom]


class Certificate(TypedDict):
    """A document with its signature, and the number of the key."""

    document: Document
    key_number: int
    public_key: str
    signature: str


def signed_bytes(document: Mapping[str, object]) -> bytes:
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
    return [
        one.request_id
        for one in database.transaction(sql.waiting)
        if not sign_if_gone(database, one.request_id, one.streams, grace)
    ]


def _sign_if_gone(
    connection: Connection, request_id: str, streams: list[int], grace: float
) -> list[str]:
    if waits := sql.waits_for(connection, streams=streams, grace=grace):
        return waits
    if not sql.may_sign(connection):
        return ["a run of upkeep, which signs it"]
    if sql.is_unfounded(connection, id=request_id):
        return ["a person: its record is not what the compactions and holes say; run weir audit"]
    number, key = _key(connection)
    document = sql.document(connection, id=request_id)
    certificate = {
        "document": document,
        "key_number": number,
        "public_key": _text(key.public_key().public_bytes_raw()),
        "signature": _text(key.sign(signed_bytes(document))),
    }
    sql.sign(connection, id=request_id, certificate=json.dumps(certificate))
    return []


def _key(connection: Connection) -> tuple[int, Ed25519PrivateKey]:
    """Return the newest key of the installation; make the first one."""
    newest = sql.newest_key(connection)
    if newest is None:
        made = Ed25519PrivateKey.generate()
        sql.add_key(
            connection, public=made.public_key().public_bytes_raw(),
            private=made.private_bytes_raw(),
        )  # fmt: skip
        newest = sql.newest_key(connection)
        assert newest is not None
    return newest.key_number, Ed25519PrivateKey.from_private_bytes(bytes(newest.private_key))


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
