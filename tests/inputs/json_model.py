"""A small model of json files: what their lines become by semantics 12.3, one value at a time."""

import datetime as dt
import json
import re
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

from weir.model.schema import Field, Kind, new_field

SPECIAL = ("NaN", "Infinity", "-Infinity")


@dataclass(frozen=True)
class Token:
    """A number as it is written."""

    text: str


class NotKept(Exception):
    """A value is none of its type."""


def parsed(text: str) -> list[dict[str, Any]]:
    """The objects of a value, or of values with commas. Raises ValueError."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in found}) < len(found) or any(not name for name, _ in found):
            raise ValueError("names")
        return dict(found)

    whole = text if text.strip(" \t").startswith("[") else f"[{text}]"
    values = json.loads(
        whole, object_pairs_hook=pairs, parse_float=Token, parse_int=Token, parse_constant=Token
    )
    json.dumps(values, default=lambda one: one.text, ensure_ascii=False).encode()
    if not all(isinstance(one, dict) for one in values):
        raise ValueError("no object")
    return list(values)


def value(found: Any, kind: Any) -> Any:
    """A value in a type. Raises NotKept."""
    if found is None:
        return None
    if isinstance(kind, dict):
        return nested(found, kind)
    token = found.text if isinstance(found, Token) else None
    if kind == "string":
        return as_text(found)
    if kind == "boolean":
        return kept(found, isinstance(found, bool))
    if kind == "long":
        fits = token is not None and re.fullmatch(r"0|-?[1-9]\d*", token)
        return kept(token and int(token), fits and -(1 << 63) <= int(str(token)) < 1 << 63)
    if kind == "double":
        if found in SPECIAL or token in SPECIAL:
            return float(token or found)
        number = float(kept(token, token is not None) or 0)
        same = abs(number) != float("inf") and Decimal(repr(number)) == Decimal(str(token))
        return kept(number, same)
    if kind.startswith("decimal"):
        exact = Decimal(kept(token, token is not None and token not in SPECIAL) or 0)
        _, digits, exponent = exact.as_tuple()
        assert isinstance(exponent, int)
        cents = exact.scaleb(2) if len(digits) < 20 and abs(exponent) < 50 else Decimal("0.5")
        return kept(exact, cents == int(cents) and abs(cents) < 10**9)
    if not isinstance(found, str):
        raise NotKept
    try:
        if kind == "date":
            return dt.date.fromisoformat(kept(found, re.fullmatch(r"\d{4}-\d\d-\d\d", found)))
        pattern = r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d:\d\d(\.\d{6})?)?"
        return dt.datetime.fromisoformat(kept(found, re.fullmatch(pattern, found, re.ASCII)))
    except ValueError:
        raise NotKept from None


def kept(found: Any, test: Any) -> Any:
    if not test:
        raise NotKept
    return found


def nested(found: Any, kind: dict[str, Any]) -> Any:
    if kind["type"] == "array":
        return [value(one, kind["elementType"]) for one in kept(found, isinstance(found, list))]
    kept(found, isinstance(found, dict))
    if kind["type"] == "map":
        return [(name, value(one, kind["valueType"])) for name, one in found.items()]
    names = [one["name"] for one in kind["fields"]]
    kept(found, all(one is None or name in names for name, one in found.items()))
    return {one["name"]: value(found.get(one["name"]), one["type"]) for one in kind["fields"]}


def as_text(found: Any) -> str:
    """What a column of texts has of a value."""
    if isinstance(found, str):
        return found
    shown = json.dumps(
        marked(found), ensure_ascii=False, separators=(",", ":")
    )  # lower case hexadecimal
    shown = re.sub(r"\\u00[01][0-9a-f]", lambda m: r"\u" + m[0][2:].upper(), shown)
    return re.sub('"#<(.*?)>#"', r"\1", shown)


def marked(found: Any) -> Any:
    if isinstance(found, Token):
        return f"#<{found.text}>#"
    if isinstance(found, dict):
        return {name: marked(one) for name, one in found.items()}
    return [marked(one) for one in found] if isinstance(found, list) else found


def split(line: str) -> list[str]:
    """The values of a line that stand one after another."""
    try:
        parsed(line)
        return [line]
    except ValueError:
        pass
    found, begin, place = [], 0, 0
    while place < len(line):
        if line[place] == '"':
            end = place + 1
            while end < len(line) and line[end] != '"':
                end += 2 if line[end] == "\\" else 1
            place = end + 1 if end < len(line) else place + 1
            continue
        end = place + 1
        while line[place] in "}]" and line[end : end + 1] in (" ", "\t"):
            end += 1
        if line[place] in "}]" and line[end : end + 1] in ("{", "["):
            found.append(line[begin : place + 1])
            begin = end
        place = max(place + 1, begin)
    return [*found, line[begin:]]


def rows_of(lines: list[str], fields: list[Field]) -> tuple[list[dict[str, Any]], list[str]]:
    """The events of lines, and what is malformed."""
    events, malformed = list[dict[str, Any]](), list[str]()
    for text in (one for line in lines for one in split(line)):
        if not text.strip(" \t"):
            continue
        try:
            events += [
                {one["name"]: value(found.get(one["name"]), one["type"]) for one in fields}
                for found in parsed(text)
            ]
        except (ValueError, NotKept):
            malformed.append(text)
    return events, malformed


TEXTS = ["", "a", "ä€😀", "null", "true", "1.50", "} {", "][", '"', "\\", "a\tb\n", "\x01\x7f",
         "2026-01-01", "2026-02-30", "2026-01-01T12:00:00", "2026-01-01 12:00:00.123456", "NaN",
         "Infinity", "12:00", "\u2028", " "]  # fmt: skip
TOKENS = ["0", "-0", "1", "-7", "1.5", "1.50", "0.1", "1e3", "1E-2", "12345678.12", "1.005",
          "9007199254740992", "9007199254740993", "9223372036854775807", "9223372036854775808",
          "123456789012345678901234567890123456789012", "0.30000000000000004", "1e400", "NaN",
          "0.1234567890123456789", "-Infinity", "100", "3.0", "99999999.99"]  # fmt: skip


def written(random: Random, found: Any) -> str:
    """A value as some program writes it."""
    blank = random.choice(["", "", "", " ", "\t"])
    if isinstance(found, Token):
        return found.text
    if isinstance(found, dict):
        items = [f"{written(random, n)}{blank}:{blank}{written(random, v)}"
                 for n, v in found.items()]  # fmt: skip
        return "{" + blank + f"{blank},".join(items) + "}"
    if isinstance(found, list):
        return "[" + f",{blank}".join(written(random, one) for one in found) + blank + "]"
    return json.dumps(found, ensure_ascii=random.random() < 0.5)


def some(random: Random, kind: Any) -> Any:
    """A value that mostly is one of a type."""
    if random.random() < 0.1:
        return None
    if random.random() < 0.02:
        kind = random.choice(["string", "long", "boolean", {"type": "array", "elementType": "long"},
                              {"type": "map", "valueType": "string"}])  # fmt: skip
    if isinstance(kind, dict):
        if kind["type"] == "array":
            return [some(random, kind["elementType"]) for _ in range(random.randrange(4))]
        if kind["type"] == "map":
            names = random.sample(["a", "b c", "ä", "}", '"'], random.randrange(4))
            return {name: some(random, kind["valueType"]) for name in names}
        there = [one for one in kind["fields"] if random.random() < 0.8]
        random.shuffle(there)
        return {one["name"]: some(random, one["type"]) for one in there}
    if kind == "boolean":
        return random.random() < 0.5
    if kind == "string":
        return random.choice([random.choice(TEXTS), Token(random.choice(TOKENS))])
    if kind == "date":
        return random.choice(["2026-01-01", "0001-01-01", "9999-12-31", random.choice(TEXTS)])
    if kind == "timestamp_ntz":
        return random.choice(["2026-01-01 12:00:00", "1899-12-31T23:59:59", random.choice(TEXTS)])
    good = {"long": ["0", "5", "-9223372036854775808"], "double": ["1.5", "0", "1e3", "2.50"],
            "decimal(9,2)": ["1.5", "1.50", "7", "0.01"]}[kind]  # fmt: skip
    return Token(random.choice([*good, random.choice(TOKENS)]))


LEAVES = ["string", "long", "double", "decimal(9,2)", "boolean", "date", "timestamp_ntz"]


def some_kind(random: Random, depth: int = 0) -> Kind:
    """A type of a column."""
    which = random.random() if depth < 3 else 0
    if which < 0.7:
        return random.choice(LEAVES)
    if which < 0.8:
        return {"type": "array", "elementType": some_kind(random, depth + 1), "containsNull": True}
    if which < 0.87:
        return {"type": "map", "keyType": "string", "valueType": some_kind(random, depth + 1),
                "valueContainsNull": True}  # fmt: skip
    return {"type": "struct", "fields": some_fields(random, depth + 1)}


def some_fields(random: Random, depth: int = 0) -> list[Field]:
    """Columns, or fields of a struct."""
    names = random.sample(["k", "n", "ä b", "x.y", "_", "}", "null"], random.randrange(1, 6))
    return [new_field(name, some_kind(random, depth)) for name in names]


def some_line(random: Random, fields: list[Field]) -> str:
    """A line that mostly can be read."""
    objects = [
        written(random, some(random, {"type": "struct", "fields": fields}) or {})
        for _ in range(random.choice([1, 1, 1, 1, 2, 3]))
    ]
    line = random.choice(
        [
            *(["".join(objects)] * 3),
            ",".join(objects),
            f"[{', '.join(objects)}]",
            " ".join(objects),
            "][".join(f"[{','.join(objects)}]" for _ in "ab"),
        ]
    )
    if random.random() < 0.1:
        place = random.randrange(len(line) + 1)
        more = random.choice(["", "{", "}", "]", "[", '"', ",", "\\", "x", "1", ":", "null", " "])
        line = line[:place] + more + line[place + random.randrange(2) :]
    return random.choice(["", "", "", "\ufeff"]) + line
