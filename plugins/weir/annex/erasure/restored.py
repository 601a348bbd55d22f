"""Say what is known of erasures since a backup: what the warehouse shows, and what certificates say
that were kept elsewhere. A restored database knows nothing of them, so who was erased is back."""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from sqlalchemy import Connection

from weir.annex.erasure.certificate import Certificate, signed_bytes
from weir.annex.recovery.inventory import known_files, list_files, unknown_in
from weir.annex.recovery.recover import Certified, ErasedSince
from weir.annex.recovery.substitutes import sparse_files
from weir.controller.ownership import check_owner, read_installation
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import called, do
from weir.queries.annex.erasure import restored as sql
from weir.warehouse.marker import read_marker

_EXAMPLES = 20


def _certificates_in(given: Sequence[str]) -> list[Certificate]:
    """Return certificates that are given as JSON. Raises InvalidInput for what is none, and does
    not say what it is: a file that was named by mistake may be anything."""
    found: list[Certificate] = []
    for number, one in enumerate(given, start=1):
        try:
            certificate = json.loads(one)
            document = certificate["document"]
            found.append(certificate)
            _ = document["request"], document["stream"], document["asked_at"], document["asked"]
            _ = [(erased["stream"], erased["events"]) for erased in document["erased"]]
        except (ValueError, RecursionError, KeyError, TypeError):
            raise InvalidInput(
                "argument_invalid",
                f"entry {number} of {called('erased')} is no certificate of an erasure; give the "
                "text of certificate.json, as the page of the stream has it.",
            ) from None
    return found


def erased_since(database: Database, warehouse: str, given: Sequence[str]) -> ErasedSince:
    """Return what is to be said of erasures that the database may not know, before a recovery, and
    of the certificates that are given as JSON."""
    certificates = _certificates_in(given)
    marker, installation = read_marker(warehouse), read_installation(database)
    check_owner(warehouse, installation, marker)
    restored = installation.may_be_restored(marker)
    there = list_files(warehouse)
    known = database.transaction(known_files)
    sparse = [
        path for stream_id, found in there.items() if stream_id is not None
        for path in sparse_files(warehouse, found, unknown_in(found, known))
    ]  # fmt: skip
    requests = [one["document"]["request"] for one in certificates]

    def look(connection: Connection) -> tuple[str | None, set[str], dict[int, bytes]]:
        keys = {one.key_number: bytes(one.public_key) for one in sql.keys(connection)}
        return sql.known_until(connection), {*sql.requests(connection, requests=requests)}, keys

    until, recorded, keys = database.snapshot(look)
    said = [_said(one, recorded, keys) for one in certificates]
    lost = [one for one in said if not one["known"]]
    then: list[str] = []
    if restored:
        then.append(
            f"what was erased after {until or 'the backup'} is not known here, and is back: erase "
            "it again, from the requests or certificates that were kept elsewhere"
        )
    then += [
        f"request {one['request']} of {one['asked_at']} erased {_streams(one)}, and is not known "
        f"here: {do('erase', stream=one['stream'], keys=['KEYS'], reason='REASON', dry_run=False)}"
        for one in lost
    ]
    return {
        "unknown_since": until if restored else None, "files": len(sparse),
        "examples": sorted(sparse)[:_EXAMPLES], "certificates": said, "then": then,
    }  # fmt: skip


def _said(one: Certificate, recorded: set[str], keys: Mapping[int, bytes]) -> Certified:
    document = one["document"]
    events: dict[str, int] = {}
    for erased in document["erased"]:
        events[erased["stream"]] = events.get(erased["stream"], 0) + erased["events"]
    return {
        "request": document["request"], "stream": document["stream"],
        "asked_at": document["asked_at"], "reason": document.get("reason", ""),
        "keys": len(document["asked"].get("keys", ())),
        "condition": document["asked"].get("condition", ""), "events": events,
        "known": document["request"] in recorded,
        "signed": _is_signed(one, keys),
    }  # fmt: skip


def _is_signed(one: Certificate, keys: Mapping[int, bytes]) -> bool:
    try:
        key = Ed25519PublicKey.from_public_bytes(keys[one["key_number"]])
        key.verify(base64.b64decode(one["signature"], validate=True), signed_bytes(one["document"]))
    except (InvalidSignature, ValueError, KeyError, TypeError):
        return False
    return True


def _streams(one: Certified) -> str:
    some: Iterable[str] = (f"{events:,} of {name}" for name, events in one["events"].items())
    return f"events ({', '.join(some)})" if one["events"] else "no event"
