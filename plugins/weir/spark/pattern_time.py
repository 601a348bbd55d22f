"""Regular expressions that some text keeps busy for ever (docs/decisions/0051).

Java's try one way after another to divide a text. If a repetition is within a repetition, the
number of ways doubles with each character, and nothing can interrupt it.
"""

import re
from dataclasses import dataclass
from typing import Any

from weir.errors import InvalidInput

MANY = 10  # so many times or more is a repetition
# The argument that is a pattern.
_PATTERNS = {"regexp_extract": 1, "regexp_replace": 1, "split": 1}
_QUANTIFIER = re.compile(r"([*+?]|\{([0-9]+)(,([0-9]*))?\})([+?]?)")
_ESCAPE = re.compile(r"\\(?:Q.*?(?:\\E|\Z)|[pPxN]\{[^}]*\}|.)", re.DOTALL)
_OPENING = re.compile(r"\((?:\?(?:<[A-Za-z]\w*>|<?[=!]|>|[a-zA-Z-]*:|[a-zA-Z-]*(?=\))))?")


@dataclass
class _Group:
    """What is within parentheses: whether its length varies, and how each alternative begins."""

    atomic: bool = False
    varies: bool = False
    begins: list[str] | None = None


def check_patterns(tree: Any, text: str, what: str) -> None:
    """Raise InvalidInput for an expression with a pattern that is no constant, or that repeats what
    is a repetition itself."""
    kind = str(tree.getClass().getSimpleName())
    nodes = [tree.children().apply(i) for i in range(tree.children().length())]
    for node in nodes:
        check_patterns(node, text, what)
    if kind == "UnresolvedFunction":
        parts = tree.nameParts()
        index = _PATTERNS.get(str(parts.apply(parts.length() - 1)).lower())
    else:
        index = 1 if kind == "RLike" else None
    if index is None or index >= len(nodes):
        return
    if str(nodes[index].getClass().getSimpleName()) != "Literal":
        raise _slow(text, what, "a pattern that is no constant may be any; write it as one")
    pattern = str(nodes[index].toString())
    if found := repeated_repetition(pattern):
        raise _slow(
            text, what,
            f"its pattern repeats {found!r}, which can match a text in several ways; let what is "
            "within give nothing back, such as [0-9]++ in place of [0-9]+",
        )  # fmt: skip


def _slow(text: str, what: str, why: str) -> InvalidInput:
    return InvalidInput(
        "expression_slow", f"the {what} {text!r} may take for ever on some texts: {why}."
    )


def repeated_repetition(pattern: str) -> str:
    """Return a part of a pattern that is repeated, and can match a text in several ways. Empty if
    there is none."""
    open_: list[tuple[_Group, int]] = []
    group, at = _Group(begins=[]), 0
    atom: _Group | None = None  # what a quantifier would repeat
    start, fresh = 0, True  # where the atom begins; whether an alternative does
    while at < len(pattern):
        letter = pattern[at]
        if letter == "(":
            opening = _OPENING.match(pattern, at)
            assert opening is not None  # it matches a parenthesis alone
            _begin(group, letter, fresh)
            open_.append((group, at))
            group, at, fresh = _Group("?>" in opening[0], begins=[]), opening.end(), True
            atom = None
            continue
        if letter == ")" and open_:
            atom = group
            (group, start), fresh, at = open_.pop(), False, at + 1
            if not atom.atomic and (atom.varies or _alike(atom.begins or [])):
                group.varies = True
        elif letter == "|":
            fresh, atom, at = True, None, at + 1
            continue
        else:
            _begin(group, _first(pattern, at), fresh)
            atom, start, fresh, at = _Group(), at, False, _after(pattern, at)
        found = _QUANTIFIER.match(pattern, at)
        if found is None:
            continue
        most = {"?": 1}.get(found[1], MANY)
        if found[2] is not None:
            most = MANY if found[3] == "," else int(found[4] or found[2])
        at = found.end()
        if found[5] == "+":  # it gives nothing back
            continue
        if most >= MANY and not atom.atomic and (atom.varies or _alike(atom.begins or [])):
            return pattern[start:at]
        if found[2] is None or found[3]:
            group.varies = True
    return ""


def _begin(group: _Group, letter: str, fresh: bool) -> None:
    if fresh and group.begins is not None:
        group.begins.append(letter)


def _alike(begins: list[str]) -> bool:
    """Return whether two alternatives may begin alike: only plain letters are surely others."""
    plain = [one for one in begins if re.fullmatch(r"[\w ,;:/@#%&=<>!\"'-]", one)]
    return len(begins) > 1 and len(set(map(str.lower, plain))) < len(begins)


def _first(pattern: str, at: int) -> str:
    return pattern[at : _after(pattern, at)]


def _after(pattern: str, at: int) -> int:
    """Return where a letter, an escape or a class of letters ends."""
    if pattern[at] == "\\":
        found = _ESCAPE.match(pattern, at)
        return found.end() if found else at + 1
    if pattern[at] != "[":
        return at + 1
    depth, at = 1, at + 1
    while at < len(pattern) and depth:
        if pattern[at] == "\\":
            at += 1
        else:
            depth += {"[": 1, "]": -1}.get(pattern[at], 0)
        at += 1
    return at
