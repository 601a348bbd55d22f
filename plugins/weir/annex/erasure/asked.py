"""What an erasure was asked for, as it is recorded: so that whoever knows a key can say whether it
is meant, and nobody else can read it."""

import hashlib
import re
from collections.abc import Sequence
from typing import TypedDict

from weir.errors import InvalidInput
from weir.model.transform_nodes import WORDS
from weir.model.transforms import TRANSFORMS, condition_of, constants_of

_WORD = re.compile(rf"\b({'|'.join(sorted(WORDS))})\b", re.IGNORECASE)
_PATH = re.compile(r"(?:\s*\.\s*(?:\w+|`[^`]+`))*")  # of fields, after a column
COST = {"n": 1 << 14, "r": 8, "p": 1}  # 16 MiB and 40 ms per key: to try all keys takes long


class AskedOf(TypedDict, total=False):
    """What was asked to be erased, as it is recorded: hashes with their salt."""

    request: str
    salt: str
    hash: str
    keys: list[str]
    condition: str
    condition_hash: str


def hash_of_key(key: str, salt: bytes) -> str:
    """Return the hash of a key (or of a condition) with a salt, as digits."""
    return hashlib.scrypt(key.encode(), salt=salt, dklen=32, **COST).hex()


def is_asked(asked: AskedOf, keys: Sequence[str], condition: str) -> bool:
    """Return whether what was recorded is about these keys, or this condition, and no others."""
    salt, hashes = bytes.fromhex(asked["salt"]), set(asked.get("keys", ()))
    if len(hashes) != len(set(keys)) or bool(condition) != ("condition_hash" in asked):
        return False
    if condition:
        return asked["condition_hash"] == hash_of_key(condition, salt)
    return all(hash_of_key(key, salt) in hashes for key in keys)  # mostly not even the first one


def masked(condition: str, columns: Sequence[str] | None = None) -> str:
    """Return a condition with ? for each of its values, and for names of what is none of the
    columns: a value without its quotes. Of one that can't be understood, nobody knows what is a
    value: only the words that conditions consist of are left."""
    try:
        names = condition_of(condition, "condition").places
    except InvalidInput:
        parts = (one.strip() for one in _WORD.split(condition))
        return " ".join(one if _WORD.fullmatch(one) else "?" for one in parts if one)
    places = constants_of(condition)
    if columns is not None:
        known = {one.lower() for one in columns}
        for begin, end, name in names:
            if name.lower() not in known and (whole := _PATH.match(condition, end)):
                places.append((begin, whole.end()))
    for begin, end in sorted(places, reverse=True):
        condition = f"{condition[:begin]}?{condition[end:]}"
    return condition


def without_values(sentence: str, condition: str, columns: Sequence[str]) -> str:
    """Return what is said of a condition, without its values, and without names that may be
    some."""
    sentence = sentence.replace(repr(condition), repr(masked(condition, columns)))
    known = {one.lower() for one in (*columns, *WORDS, *TRANSFORMS)}
    for word in {*re.findall(r"\w+", condition), *re.findall("`([^`]+)`", condition)}:
        if word.lower() not in known:
            for shown in (f"'{word}'", f"'`{word}`'"):
                sentence = sentence.replace(shown, "?")
    return sentence


def as_recorded(salt: bytes, keys: Sequence[str], condition: str) -> AskedOf:
    """Return what was asked, without the keys, and without the values of the condition."""
    asked: AskedOf = {"salt": salt.hex(), "hash": "scrypt n=16384 r=8 p=1, 32 bytes"}
    if keys:
        asked["keys"] = sorted(hash_of_key(key, salt) for key in keys)
    if condition:
        asked["condition"] = masked(condition)
        asked["condition_hash"] = hash_of_key(condition, salt)
    return asked
