"""What an erasure was asked for, as it is recorded: so that whoever knows a key can say whether it
is meant, and nobody else can read it."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

# Raw texts first, in which a backslash is itself. Of these, only columns and functions are kept.
_COLUMN_OR_VALUE = re.compile(
    r"""/\*[\s\S]*?\*/ | --[^\n]* | [rR](?:'[^']*' | "[^"]*") | (`[^`]*` | [A-Za-z_]\w*)
    | '(?:[^'\\] | \\. | '')*' | "(?:[^"\\] | \\. | "")*" | [0-9][\w.]*""",
    re.VERBOSE,
)
COST = {"n": 1 << 14, "r": 8, "p": 1}  # 16 MiB and 40 ms per key: to try all keys takes long


def hash_of_key(key: str, salt: bytes) -> str:
    """Return the hash of a key (or of a condition) with a salt, as digits."""
    return hashlib.scrypt(key.encode(), salt=salt, dklen=32, **COST).hex()


def is_asked(asked: dict[str, Any], keys: Sequence[str], condition: str) -> bool:
    """Return whether what was recorded is about these keys, or this condition, and no others."""
    salt, hashes = bytes.fromhex(asked["salt"]), set(asked.get("keys", ()))
    if len(hashes) != len(set(keys)) or bool(condition) != ("condition_hash" in asked):
        return False
    if condition:
        return bool(asked["condition_hash"] == hash_of_key(condition, salt))
    return all(hash_of_key(key, salt) in hashes for key in keys)  # mostly not even the first one


def masked(condition: str) -> str:
    """Return a condition with ? for each of its values."""
    return _COLUMN_OR_VALUE.sub(lambda found: found[1] or "?", condition)


def as_recorded(salt: bytes, keys: Sequence[str], condition: str) -> dict[str, Any]:
    """Return what was asked, without the keys, and without the values of the condition."""
    asked: dict[str, Any] = {"salt": salt.hex(), "hash": "scrypt n=16384 r=8 p=1, 32 bytes"}
    if keys:
        asked["keys"] = sorted(hash_of_key(key, salt) for key in keys)
    if condition:
        asked |= {
            "condition": masked(condition), "condition_hash": hash_of_key(condition, salt),
        }  # fmt: skip
    return asked
