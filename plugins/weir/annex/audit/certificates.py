"""Check the certificates of erasures: their signatures, and what they say was erased."""

import base64
import json
from collections.abc import Iterator

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import Connection

from weir.annex.audit.sentences import Found
from weir.queries.annex.audit import certificates as sql


def false_certificates(connection: Connection) -> list[Found]:
    """Return the certificates that the installation has not signed, or that say something else than
    the ledger. All of them: they are few, and whoever changes one does not say when."""
    return [found for one in sql.signed(connection) for found in _wrong(one)][:100]


def _wrong(one: sql.Signed) -> Iterator[Found]:
    if not _is_signed(one):
        yield Found("certificate_not_signed", one.stream_name, name=one.request_id)
        return
    said = [
        [it["erasure"], it["stream"], it["events"], it["segments"]]
        for it in one.certificate["document"]["erased"]
    ]
    if sorted(said, key=str) != sorted(one.erased, key=str):
        a, b = (sum(it[2] for it in some) for some in (said, one.erased))
        yield Found("certificate_differs", one.stream_name, a=a, b=b, name=one.request_id)


def _is_signed(one: sql.Signed) -> bool:
    """Return whether the installation's key signed a certificate. Its own copy of the public key
    counts for nothing."""
    if one.public_key is None:
        return False
    document = json.dumps(one.certificate["document"], sort_keys=True, separators=(",", ":"))
    try:
        signature = base64.b64decode(one.certificate["signature"], validate=True)
        Ed25519PublicKey.from_public_bytes(bytes(one.public_key)).verify(
            signature, document.encode()
        )
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True
