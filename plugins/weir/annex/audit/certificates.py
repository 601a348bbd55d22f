"""Check the certificates of erasures: their signatures, and what they say was erased."""

import base64
import json
from types import SimpleNamespace
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import Connection, text

from weir.annex.audit.sentences import CounterExample

_MOST = 100  # counter-examples
_SIGNED = text(
    """SELECT r.request_id, r.stream_name, r.certificate, (
        SELECT k.public_key FROM signing_key k
        WHERE k.key_number::text = r.certificate ->> 'key_number') AS public_key,
        (SELECT coalesce(jsonb_agg(jsonb_build_array(
                e.erasure_number, e.stream_name, e.events, e.segments)), '[]')
         FROM erasure e WHERE e.asked ->> 'request' = r.request_id) AS erased
    FROM erasure_request r WHERE r.certificate IS NOT NULL
    ORDER BY r.request_id"""
)


def false_certificates(connection: Connection) -> list[CounterExample]:
    """Return the certificates that the installation has not signed, or that say something else than
    the ledger. All of them: they are few, and whoever changes one does not say when."""
    found: list[CounterExample] = []
    for row in connection.execute(_SIGNED):
        found += map(CounterExample.of, _wrong(row))
        if len(found) >= _MOST:
            break
    return found


def _wrong(row: Any) -> list[Any]:
    def is_(kind: str, a: int = 0, b: int = 0) -> Any:
        return SimpleNamespace(
            kind=kind, stream=row.stream_name, reader_group=None, segment=None, a=a, b=b,
            name=row.request_id,
        )  # fmt: skip

    if not _is_signed(row):
        return [is_("certificate_not_signed")]
    said = [
        [one["erasure"], one["stream"], one["events"], one["segments"]]
        for one in row.certificate["document"]["erased"]
    ]
    if sorted(said, key=str) == sorted(row.erased, key=str):
        return []
    events = (sum(one[2] for one in some) for some in (said, row.erased))
    return [is_("certificate_differs", *events)]


def _is_signed(row: Any) -> bool:
    """Return whether the installation's key signed a certificate. Its own copy of the public key
    counts for nothing."""
    if row.public_key is None:
        return False
    document = json.dumps(row.certificate["document"], sort_keys=True, separators=(",", ":"))
    try:
        signature = base64.b64decode(row.certificate["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(bytes(row.public_key)).verify(
            signature, document.encode()
        )
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True
