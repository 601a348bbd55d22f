"""Columns with named transforms, and conditions over them: one small grammar for routing keys,
event times, keys and values of adjunct stores, and whatever chooses events.

A value is a column, or a transform such as `lower(name)`, `date(at)`, `bucket(16, id)`,
`truncate(3, zip)`, `to_timestamp(at, 'dd.MM.yyyy HH:mm')` or `concat(country, '-', id)`. A
condition compares values: `op = 'delete' AND (n > 3 OR at IS NULL)`. A transform that Spark has,
too, means here what it means there. `weir.kernel.transforms` computes them.
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import NamedTuple

from weir.errors import InvalidInput
from weir.model.names import check_user_columns
from weir.model.stream_configuration import LONGEST_EXPRESSION
from weir.model.transform_nodes import WORDS, Call, Column, Constant, Node, Transform

DEEPEST = 50  # parentheses within each other
MOST_COLUMNS = 16  # times that columns are named: a value is at most so often as large as its row

# What each transform takes: c: a column or a transform of one; t: a text; n: a whole number;
# a star: any number of them.
TRANSFORMS = {
    "bigint": "c", "bucket": "nc", "coalesce": "c*", "concat": "c*", "date": "c", "day": "c",
    "hour": "c", "int": "c", "left": "cn", "lower": "c", "minute": "c", "month": "c", "string": "c",
    "substring": "cnn", "timestamp": "c", "timestamp_micros": "c", "timestamp_millis": "c",
    "to_date": "ct", "to_timestamp": "ct", "trim": "c", "truncate": "nc", "upper": "c", "year": "c",
}  # fmt: skip
_SHOWN = {
    "c": "a column or a transform of one", "t": "a text in quotes", "n": "a whole number",
}  # fmt: skip
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
_TOKEN = re.compile(
    r"""\s*(?: (?P<text>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*")
    | (?P<number>-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?(?![A-Za-z_0-9]))
    | (?P<quoted>`(?:[^`]|``)+`) | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<sign><=|>=|<>|!=|==|[=<>(),.]) )""",
    re.VERBOSE | re.DOTALL,
)


class _Token(NamedTuple):
    kind: str
    text: str
    begin: int
    end: int


def value_of(text: str, what: str) -> Transform:
    """Return a column with its transforms. `what` names it in errors. Raises InvalidInput."""
    return _parsed(text, what, _Parser.value)


def condition_of(text: str, what: str) -> Transform:
    """Return a condition. Raises InvalidInput."""
    return _parsed(text, what, _Parser.condition)


def values_of(text: str, what: str) -> dict[str, Transform]:
    """Return the columns of a value by their names: `city, lower(name) AS name`. One that is alone
    and has no name is called `value`. Raises InvalidInput."""
    parser = _Parser(text, what)
    found = parser.named()
    check_user_columns(list(found))
    return found


def is_alone(text: str, values: Mapping[str, Transform]) -> bool:
    """Return whether `values_of` a text is one that has no name."""
    return [one.text for one in values.values()] == [text.strip()]


def _parsed(text: str, what: str, rule: "Callable[[_Parser], Node]") -> Transform:
    parser = _Parser(text, what)
    node = rule(parser)
    parser.end()
    return parser.made(text, node, parser.places)


class _Parser:
    """Reads a text from left to right. `places`: the columns so far."""

    def __init__(self, text: str, what: str) -> None:
        self.text, self.what = text, what
        self.places: list[tuple[int, int, str]] = []
        self._deep = 0
        if not text.strip():
            raise InvalidInput("expression_invalid", f"the {what} is empty; name a column.")
        if len(text) > LONGEST_EXPRESSION:
            raise InvalidInput(
                "expression_invalid",
                f"the {what} has {len(text):,} characters; use at most {LONGEST_EXPRESSION:,}.",
            )
        self._tokens, at = list[_Token](), 0
        end = len(text.rstrip())
        while at < end:
            found = _TOKEN.match(text, at)
            if found is None:
                sign = text[at:].strip()[0]
                where = "" if sign in "'\"`" else "; a name with it belongs in backquotes"
                raise self._invalid(f"the sign {sign!r} can't be read{where}")
            kind, at = str(found.lastgroup), found.end()
            self._tokens.append(_Token(kind, found[kind], *found.span(kind)))
        self._tokens.append(_Token("end", "", end, end))
        self._at = 0

    def made(self, text: str, node: Node, places: list[tuple[int, int, str]]) -> Transform:
        """Return what was read, with its columns."""
        if not places:
            raise InvalidInput(
                "expression_invalid",
                f"the {self.what} {text!r} uses no column, so it would be the same for every "
                "event; name a column.",
            )
        if len(places) > MOST_COLUMNS:
            raise InvalidInput(
                "expression_invalid",
                f"the {self.what} {text!r} names columns {len(places)} times; name them at most "
                f"{MOST_COLUMNS} times.",
            )
        columns = tuple({name.lower(): name for *_, name in places}.values())
        check_user_columns(list(columns))
        return Transform(text, node, columns, tuple(places))

    def named(self) -> dict[str, Transform]:
        """Read values with names, up to the end."""
        found, alone = dict[str, Transform](), ""
        while True:
            places, self.places = self.places, []
            begin = self._peek().begin
            node = self.value()
            end = self._tokens[self._at - 1].end
            item = [(a - begin, b - begin, column) for a, b, column in self.places]
            made = self.made(self.text[begin:end], node, item)
            self.places = places
            name = node.path[-1] if isinstance(node, Column) else ""
            if self._word("as"):
                name = self._name("AS")
            if not name:
                alone = alone or made.text
            if name.lower() in map(str.lower, found):
                raise self._invalid(f"two columns have the name {name!r}")
            found[name] = made
            if not self._sign(","):
                break
        self.end()
        if is_alone(self.text, found):
            return {"value": made}
        if alone:
            raise self._invalid(f"{alone} has no name; write {alone} AS a name")
        return found

    def value(self) -> Node:
        """Read a column, a constant, or a transform."""
        token = self._next()
        if token.kind in ("text", "number"):
            return self._constant(token)
        low = token.text.lower()
        if token.kind == "name" and low in ("true", "false"):
            return Constant(low == "true")
        if token.kind == "name" and low in ("date", "timestamp") and self._peek().kind == "text":
            return Constant(self._text(self._next()), low)
        if token.kind == "name" and self._peek().text == "(":
            self._at += 1
            return self._call(low)
        if token.kind == "quoted" or (token.kind == "name" and low not in WORDS):
            names = [_unquoted(token)]
            while self._sign("."):
                names.append(self._name("a dot"))
            self.places.append((token.begin, token.end, names[0]))
            return Column(tuple(names))
        where = "; a column of that name belongs in backquotes" if token.kind == "name" else ""
        raise self._invalid(f"{_shown(token)} stands where a column or a value should{where}")

    def _call(self, name: str) -> Node:
        self._deepen()
        if name == "cast":
            of = self.value()
            if not self._word("as"):
                raise self._invalid("cast(column AS type) says which type")
            begin, deep = self._peek().begin, 0
            while deep or self._peek().text not in (")", ""):
                deep += {"(": 1, ")": -1}.get(self._peek().text, 0)
                if self._next().kind == "end":
                    break
            kind = Constant(self.text[begin : self._peek().begin].strip())
            self._expect(")")
            self._deep -= 1
            return Call("cast", (of, kind))
        if name not in TRANSFORMS:
            raise InvalidInput(
                "expression_invalid",
                f"the {self.what} {self.text!r} calls {name}(), which is no transform; use "
                f"{', '.join(TRANSFORMS)} or cast, or give the rows a column with its value.",
            )
        args = list[Node]()
        while self._peek().text != ")":
            args.append(self.value())
            if not self._sign(","):
                break
        self._expect(")")
        self._deep -= 1
        self._check(name, args)
        return Call(name, tuple(args))

    def _check(self, name: str, args: list[Node]) -> None:
        takes = TRANSFORMS[name]
        many = takes.endswith("*")
        wanted = takes[0] * max(1, len(args)) if many else takes
        if name == "to_timestamp" and len(args) == 1:
            wanted = "c"
        kinds = ""
        for arg in args:
            constant = arg.value if isinstance(arg, Constant) else None
            whole = isinstance(constant, Decimal) and constant == int(constant)
            is_text = isinstance(constant, str) and constant
            kinds += "n" if whole else "t" if is_text else "c"
        if many and args:  # these take constants, too
            kinds = "c" * len(args)
        if kinds != wanted:
            shown = ", ".join(_SHOWN[one] for one in takes.rstrip("*"))
            raise self._invalid(f"{name} takes {shown}{', or several' if many else ''}")

    def condition(self) -> Node:
        """Read a condition."""
        return self._chain("or", lambda: self._chain("and", self._not))

    def _chain(self, word: str, part: Callable[[], Node]) -> Node:
        parts = [part()]
        while self._word(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Call(word, tuple(parts))

    def _not(self) -> Node:
        if self._word("not"):
            self._deepen()
            found = Call("not", (self._not(),))
            self._deep -= 1
            return found
        if self._peek().text == "(" and self._peek().kind == "sign":
            self._at += 1
            self._deepen()
            within = self.condition()
            self._expect(")")
            self._deep -= 1
            return within
        return self._compared()

    def _compared(self) -> Node:
        left = self.value()
        token = self._peek()
        if token.kind == "sign" and token.text in (*COMPARISONS, "==", "<>"):
            self._at += 1
            sign = {"==": "=", "<>": "!="}.get(token.text, token.text)
            return Call(sign, (left, self.value()))
        if self._word("is"):
            negated = self._word("not")
            if not self._word("null"):
                raise self._invalid("after IS stands NULL or NOT NULL")
            return _negated(Call("is null", (left,)), negated)
        negated = self._word("not")
        if self._word("in"):
            self._expect("(")
            options = [self.value()]
            while self._sign(","):
                options.append(self.value())
            self._expect(")")
            if not all(isinstance(one, Constant) for one in options):
                raise self._invalid("IN takes values, and no columns")
            return _negated(Call("in", (left, *options)), negated)
        if self._word("like"):
            pattern = self.value()
            if not (isinstance(pattern, Constant) and isinstance(pattern.value, str)):
                raise self._invalid("LIKE takes a text in quotes")
            return _negated(Call("like", (left, pattern)), negated)
        if self._word("between"):
            low = self.value()
            if not self._word("and"):
                raise self._invalid("BETWEEN takes two values with AND between them")
            both = Call("and", (Call(">=", (left, low)), Call("<=", (left, self.value()))))
            return _negated(both, negated)
        if negated:
            raise self._invalid("after NOT stands IN, LIKE or BETWEEN")
        return left

    def end(self) -> None:
        """Check that nothing follows."""
        if (token := self._peek()).kind != "end":
            if token.kind in ("name", "quoted"):
                raise self._invalid(
                    f"{token.text!r} follows what is complete; a name with blanks or signs belongs "
                    "in backquotes"
                )
            raise self._invalid(f"{_shown(token)} follows what is complete")

    def _constant(self, token: _Token) -> Constant:
        return Constant(self._text(token) if token.kind == "text" else Decimal(token.text))

    def _text(self, token: _Token) -> str:
        quote, inner = token.text[0], token.text[1:-1]
        for escaped in re.findall(r"\\(.)", inner, re.DOTALL):
            if escaped not in "\\'\"":
                raise self._invalid(
                    "a text has a backslash before another sign; write \\\\ for a backslash"
                )
        return re.sub(r"\\(.)", r"\1", inner.replace(quote * 2, quote), flags=re.DOTALL)

    def _deepen(self) -> None:
        self._deep += 1
        if self._deep > DEEPEST:
            raise InvalidInput(
                "expression_invalid",
                f"the {self.what} {self.text!r} has more than {DEEPEST} parentheses within each "
                "other; use fewer.",
            )

    def _peek(self, ahead: int = 0) -> _Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def _next(self) -> _Token:
        token = self._peek()
        self._at += 1
        return token

    def _word(self, word: str) -> bool:
        token = self._peek()
        found = token.kind == "name" and token.text.lower() == word
        self._at += found
        return found

    def _sign(self, sign: str) -> bool:
        token = self._peek()
        found = token.kind == "sign" and token.text == sign
        self._at += found
        return found

    def _expect(self, sign: str) -> None:
        if not self._sign(sign):
            token = self._peek()
            raise self._invalid(f"{sign!r} is missing before {_shown(token)}")

    def _name(self, after: str) -> str:
        token = self._next()
        if token.kind not in ("name", "quoted"):
            raise self._invalid(f"a name follows {after}")
        return _unquoted(token)

    def _invalid(self, why: str) -> InvalidInput:
        return InvalidInput(
            "expression_invalid",
            f"the {self.what} {self.text!r} can't be understood: {why}.",
        )


def constants_of(text: str) -> list[tuple[int, int]]:
    """Return where the texts and numbers of what can be read stand in it."""
    tokens = _Parser(text, "")._tokens
    return [(one.begin, one.end) for one in tokens if one.kind in ("text", "number")]


def _shown(token: _Token) -> str:
    """Return a token as errors show it: without a value, which may be a secret."""
    known = {"text": "a text", "number": "a number", "end": "the end"}
    return known.get(token.kind) or repr(token.text)


def _negated(node: Node, negated: bool) -> Node:
    return Call("not", (node,)) if negated else node


def _unquoted(token: _Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind == "quoted" else token.text
