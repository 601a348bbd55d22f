"""Bound how large the result of an expression may become (docs/decisions/0051).

The memory of a JVM is shared by all that it does, so an expression that makes a gigabyte of a word
stops others, too. Each function that is allowed has a rule here, from which follows how often each
column is in the result at most, and how many bytes come to that. Nothing is computed.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from weir.errors import InvalidInput

MOST_TIMES = 100  # how often a column may be in a result
MOST_BYTES = 100_000  # in a result, whatever the columns have
DEEPEST = 100  # operators and functions within each other
MOST_DIGITS = 400  # that a number is rounded to, or shown with: a double has no more
MOST_PADDING = 1_000  # characters of a value of lpad and rpad
_FIXED = 64  # bytes: no number, time, truth value or hash is longer as text

FIXED = frozenset(
    """abs between bigint bin boolean char_length character_length crc32 date date_trunc day
    dayofmonth dayofweek dayofyear decimal double extract float hour int isnotnull isnull length md5
    minute mod month pmod quarter second sha sha1 sign smallint timestamp tinyint to_date
    to_timestamp trunc unix_date unix_seconds weekofyear xxhash64 year sha2""".split()
)
# No longer than their longest argument.
PART = frozenset(
    """btrim coalesce element_at greatest if ifnull least left ltrim nullif nvl nvl2 regexp_extract
    right rtrim split split_part string substr substring substring_index trim""".split()
)
SUM = frozenset("concat named_struct struct".split())
# Bytes of the result for each byte of the argument: `ŉ` and `ΐ` have two and three letters in upper
# case, translate may put four bytes in the place of one, and JSON writes \u0001 for one.
TIMES = {
    "get_json_object": 6, "hex": 2, "initcap": 3, "lcase": 3, "lower": 3, "to_json": 6,
    "translate": 4, "ucase": 3, "upper": 3,
}  # fmt: skip
_FIXED_NODES = frozenset(
    """Add Subtract Multiply Divide Remainder IntegralDivide UnaryMinus UnaryPositive And Or Not
    EqualTo EqualNullSafe LessThan LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull
    In Like RLike Extract NamePlaceholder""".split()
)
_SUM_NODES = frozenset("CreateNamedStruct Concat".split())
_LOOKS_AROUND = re.compile(r"\(\?<?[=!]")


@dataclass(frozen=True)
class Size:
    """The most bytes that a result may have: so many times each column, and so many more."""

    more: int = 0
    times: Counter[str] = field(default_factory=Counter)

    def by(self, factor: int, more: int = 0) -> "Size":
        """Return the size of something so many times as large, and so many bytes."""
        times = Counter({name: count * factor for name, count in self.times.items()})
        return Size(self.more * factor + more, times)


def check_growth(tree: Any, text: str, what: str) -> Size:
    """Return how large the result of an expression may become. Raises InvalidInput, which names the
    function and the bound, if a part of it may become too large or is nested too deeply."""
    return _size(tree, text, what, 0)


def _size(node: Any, text: str, what: str, depth: int) -> Size:
    if depth > DEEPEST:
        raise InvalidInput(
            "expression_invalid",
            f"the {what} {text!r} has more than {DEEPEST} operators or functions within each "
            "other; use fewer.",
        )
    nodes = _children(node)
    inner = [_size(child, text, what, depth + 1) for child in nodes]
    kind = str(node.getClass().getSimpleName())
    name = kind
    if kind == "UnresolvedAttribute":
        return Size(_FIXED, Counter({str(node.nameParts().apply(0)).lower(): 1}))
    if kind == "Literal":
        return Size(len(_literal(node).encode()) + _FIXED)
    if kind == "UnresolvedFunction":
        parts = node.nameParts()
        name = str(parts.apply(parts.length() - 1)).lower()
        size = _of_function(name, nodes, inner, text, what)
    elif kind in _FIXED_NODES:
        size = Size(_FIXED)
    else:
        size = _sum(inner) if kind in _SUM_NODES else _largest(inner)
    most = max(size.times.values(), default=0)
    if most > MOST_TIMES or size.more > MOST_BYTES:
        grown = f"{most:,} times its columns" if most > MOST_TIMES else f"{size.more:,} bytes"
        bound = f"{MOST_TIMES:,} times" if most > MOST_TIMES else f"{MOST_BYTES:,} bytes"
        raise _grows(text, what, name, f"a result of {grown}; the most is {bound}")
    return size


def _of_function(name: str, given: list[Any], inner: list[Size], text: str, what: str) -> Size:
    if (rule := _RULES.get(name)) is not None:
        return rule(_Call(name, given, inner, text, what))
    if name in TIMES:
        return inner[0].by(TIMES[name], _FIXED) if inner else Size(_FIXED)
    if name in SUM:
        return _sum(inner)
    return _largest(inner) if name in PART else Size(_FIXED)


@dataclass(frozen=True)
class _Call:
    """A call of a function whose growth depends on what its arguments say."""

    name: str
    given: list[Any]
    inner: list[Size]
    text: str
    what: str

    def constant(self, index: int, default: str = "") -> str:
        """Return an argument, which must be a literal; the default if it is not given."""
        if index >= len(self.given):
            return default
        node, sign = self.given[index], ""
        if str(node.getClass().getSimpleName()) == "UnaryMinus":
            node, sign = _children(node)[0], "-"
        if str(node.getClass().getSimpleName()) != "Literal":
            raise _grows(
                self.text, self.what, self.name,
                f"a result without a bound, because its argument {index + 1} is no constant",
            )  # fmt: skip
        return sign + _literal(node)

    def number(self, index: int, most: int, default: str = "0") -> int:
        """Return an argument, which must be a whole number of at most so much."""
        written = self.constant(index, default)
        if re.fullmatch(r"-?[0-9]{1,9}", written) is None or abs(int(written)) > most:
            raise _grows(
                self.text, self.what, self.name,
                f"{written} as its argument {index + 1}; the most is {most:,}",
            )  # fmt: skip
        return int(written)


def _rounded(call: _Call) -> Size:
    call.number(1, MOST_DIGITS)
    return Size(_FIXED)


def _number(call: _Call) -> Size:
    written = call.constant(1)
    if re.fullmatch(r"-?[0-9]+", written):
        call.number(1, MOST_DIGITS)
    return Size(3 * MOST_DIGITS + len(written.encode()))


def _padded(call: _Call) -> Size:
    return Size(max(0, 4 * call.number(1, MOST_PADDING)))


def _replaced(call: _Call) -> Size:
    new = call.constant(2)
    old = _literal(call.given[1]) if _is_literal(call.given[1:2]) else ""
    factor = -(-len(new.encode()) // max(1, len(old.encode())))
    return call.inner[0].by(max(1, factor)) if call.inner else Size(_FIXED)


def _replaced_matches(call: _Call) -> Size:
    new = call.constant(2)
    groups = new.count("$")
    if groups and _LOOKS_AROUND.search(call.constant(1)):
        raise _grows(
            call.text, call.what, call.name,
            "a result without a bound, because a group in (?=...) may be copied from each place",
        )  # fmt: skip
    size = len(new.encode())
    return call.inner[0].by(1 + size + groups, size) if call.inner else Size(_FIXED)


def _joined(call: _Call) -> Size:
    # An array has at most an element for each of its bytes.
    separator = len(call.constant(0).encode())
    whole = _sum(call.inner[1:])
    return whole.by(1 + separator, separator * len(call.inner))


def _date_format(call: _Call) -> Size:
    # A letter of a pattern stands for a name or a number.
    return call.inner[1].by(_FIXED) if len(call.inner) > 1 else Size(_FIXED)


_RULES: dict[str, Callable[[_Call], Size]] = {
    "ceil": _rounded, "ceiling": _rounded, "concat_ws": _joined, "date_format": _date_format,
    "floor": _rounded, "format_number": _number, "lpad": _padded, "regexp_replace":
    _replaced_matches, "replace": _replaced, "round": _rounded, "rpad": _padded,
}  # fmt: skip
KNOWN = FIXED | PART | SUM | TIMES.keys() | _RULES.keys()


def _grows(text: str, what: str, name: str, why: str) -> InvalidInput:
    called = f"{name}()" if name.islower() else name
    return InvalidInput(
        "expression_grows",
        f"the {what} {text!r} may use up the memory of those who compute it, because {called} "
        f"has {why}; make it smaller.",
    )


def _sum(sizes: Iterable[Size]) -> Size:
    times: Counter[str] = Counter()
    more = 0
    for size in sizes:
        times.update(size.times)
        more += size.more
    return Size(more, times)


def _largest(sizes: Iterable[Size]) -> Size:
    times: Counter[str] = Counter()
    more = 0
    for size in sizes:
        times |= size.times
        more = max(more, size.more)
    return Size(more, times)


def _is_literal(nodes: list[Any]) -> bool:
    return bool(nodes) and str(nodes[0].getClass().getSimpleName()) == "Literal"


def _literal(node: Any) -> str:
    return str(node.toString())


def _children(node: Any) -> list[Any]:
    children = node.children()
    return [children.apply(i) for i in range(children.length())]
