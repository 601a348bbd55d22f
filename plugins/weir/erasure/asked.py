"""What an erasure was asked for, as it is recorded: so that whoever knows a key can say whether it
is meant, and nobody else can read it."""

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from weir.errors import InvalidInput
from weir.model.transform_nodes import WORDS
from weir.model.transforms import condition_of, constants_of

_WORD = re.compile(rf"\b({'|'.join(sorted(WORDS))})\b", re.IGNORECASE)
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
    """Return a condition with ? for each of its values. Of one that can't be understood, nobody
    knows what is a value: only the words that conditions consist of are left."""
    try:
        condition_of(condition, "condition")
    except InvalidInput:
        parts = (one.strip() for one in _WORD.split(condition))
        return " ".join(one if _WORD.fullmatch(one) else "?" for one in parts if one)
    for begin, end in reversed(constants_of(condition)):
        condition = f"{condition[:begin]}?{condition[end:]}"
    return condition


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
