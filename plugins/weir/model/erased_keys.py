"""The routing keys that were erased from a stream, which knows hashes of them (semantics 20).

An append may have a million keys, so the hash is fast, with a salt of the stream."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from weir.errors import BadRows, counted
from weir.front_ends import do
from weir.model.names import StreamName

DIGITS = 16  # of a hash, in hexadecimal


@dataclass(frozen=True)
class ErasedKeys:
    """What the routing keys of an append are compared with. Nobody shows it, because whoever has it
    can try keys. Of an append that is written, only their `number` is kept."""

    number: int
    salt: bytes = field(default=b"", repr=False)
    hashes: frozenset[str] = field(default=frozenset(), repr=False)

    @classmethod
    def of(
        cls, salt: bytes | memoryview | None, hashes: Iterable[str] | None
    ) -> "ErasedKeys | None":
        """Return them as the database has them; None if there are none."""
        if salt is None or not (known := frozenset(hashes or ())):
            return None
        return cls(len(known), bytes(salt), known)

    def among(self, keys: Iterable[str]) -> list[str]:
        """Return those of some keys that were erased."""
        return [key for key in keys if self._hash(key) in self.hashes]

    def _hash(self, key: str) -> str:
        return hashlib.sha256(self.salt + key.encode()).hexdigest()[:DIGITS]


def refusal(stream: StreamName, routing_key: str, events: int) -> BadRows:
    """Return the error for an append with events of erased keys. It has no key: errors are kept."""
    have = "has a routing key" if events == 1 else "have routing keys"
    return BadRows(
        "key_erased",
        f"{counted(events, 'event')} {have} ({routing_key}) whose events were erased from stream "
        f"{stream}, which refuses such appends, so nothing was appended; leave these rows out, or "
        f"to allow them {do('update_stream', stream=str(stream), refuse_erased='no')}.",
    )
