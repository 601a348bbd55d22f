"""Statements as they are sent, with what the functions do that they call."""

import re
from functools import cache

from weir.database.definitions import files, split
from weir.source_tree import beside

LOCK = re.compile(r"FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)")
WRITE = re.compile(
    r"\b(?:(?:INSERT|MERGE) INTO|TRUNCATE(?: TABLE)?|DELETE FROM"
    r"|(?<!KEY )(?<!FOR )(?<!DO )UPDATE)(?: ONLY)? (?:weir_internal\.)?(\w+)"
)
_CALL = re.compile(r"\b(\w+)\(")
_FUNCTION = re.compile(
    r"CREATE OR REPLACE FUNCTION weir(?:_internal)?\.(\w+)\(.*?"
    r"(?:AS \$\$(.*)\$\$|\bRETURN\b(.*))",
    re.DOTALL,
)
_VIEW = re.compile(r"CREATE OR REPLACE VIEW weir\.(\w+)(?: \([^)]*\))? AS\b(.*)", re.DOTALL)
_WITH = re.compile(r"\b(\w+) AS (?:(?:NOT )?MATERIALIZED )?\(")
_TOKEN = re.compile(r"'(?:[^']|'')*'|\w+|[(),;]")
# After these words a statement names a table; after the first ones, several with commas.
_LISTS = {"FROM", "USING", "TRUNCATE"}
_NAMES = _LISTS | {"JOIN", "INTO", "UPDATE", "TABLE"}
_END_A_LIST = {
    "SELECT", "WHERE", "SET", "GROUP", "ORDER", "HAVING", "LIMIT", "OFFSET", "FETCH", "FOR",
    "UNION", "EXCEPT", "INTERSECT", "WINDOW", "VALUES", "RETURNING", ";",
}  # fmt: skip
_NO_TABLE_FOLLOWS = {
    ("DISTINCT", "FROM"), ("FOR", "UPDATE"), ("KEY", "UPDATE"), ("DO", "UPDATE"),
}  # fmt: skip


def _found(folder: str, pattern: re.Pattern[str]) -> dict[str, str]:
    """Return what the files of a folder create, by name; for several of a name, all of them."""
    found: dict[str, str] = {}
    for path in files(beside("sql"), folder):
        for statement in split(path.read_text()):
            if (match := pattern.match(statement)) is not None:
                name, *text = match.groups()
                found[name] = f"{found.get(name, '')} {_plain(next(filter(None, text)))}"
    return found


def _plain(statement: str) -> str:
    """Return a statement without comments, and without the schemas of names."""
    return re.sub(r"--[^\n]*|\bweir(_internal)?\.|\"", "", statement)


@cache
def bodies() -> dict[str, str]:
    """Return the bodies of all functions by name."""
    return _found("functions", _FUNCTION)


@cache
def views() -> dict[str, str]:
    """Return the queries of all views by name."""
    return _found("views", _VIEW)


def named_tables(statement: str) -> set[str]:
    """Return what a statement names where it must name a table, a view or a function: after FROM,
    JOIN and the like, also behind a comma, within parentheses and in a text that it executes."""
    found: set[str] = set()
    outer: list[bool] = []
    is_list, is_next, before = False, False, ""
    for token in _TOKEN.findall(_plain(statement)):
        if token == "(":
            outer.append(is_list)
            is_list = is_next = is_next and before != "USING"  # there it holds columns
        elif token == ")":
            is_list, is_next = outer.pop() if outer else False, False
        elif token == ",":
            is_next = is_list
        elif token in _NAMES:
            is_next = (before, token) not in _NO_TABLE_FOLLOWS
            is_list = is_list or (is_next and token in _LISTS)
        elif token in _END_A_LIST:
            is_list = is_next = False
        elif token.startswith("'"):
            found |= named_tables(token[1:-1])
        elif is_next and token not in ("ONLY", "LATERAL"):
            found.add(token)
            is_next = False
        before = token
    return found


@cache
def functions() -> dict[str, str]:
    """Return, by name, the bodies of the functions that lock or write, or call one that does."""
    found = bodies()
    does = {name for name, body in found.items() if LOCK.search(body) or WRITE.search(body)}
    calls = re.compile(rf"\b({'|'.join(sorted(does))})\(")
    return {name: body for name, body in found.items() if name in does or calls.search(body)}


def inlined(statement: str) -> str:
    """Return what the functions do that a statement calls, one calling the other, and it itself."""
    return " ".join(" ".join([*_called_by(statement), statement]).split())


@cache
def _called_by(text: str) -> tuple[str, ...]:
    names = set(_CALL.findall(text))
    called = [body for name, body in functions().items() if name in names]
    return tuple(one for body in called for one in (*_called_by(body), body))


@cache
def read_by(statement: str) -> set[str]:
    """Return the tables that a statement names, itself or by the functions and views it names."""
    tables, to_do, done = set(), [statement], set()
    while to_do:
        text = to_do.pop()
        other = set(_WITH.findall(text))  # than a view of the name
        named = {name: views().get(name) for name in named_tables(text) - (other & views().keys())}
        tables |= {name for name, query in named.items() if query is None}
        called = {name: bodies().get(name) for name in _CALL.findall(text)}
        to_do += [body for name, body in {**named, **called}.items() if body and name not in done]
        done |= named.keys() | called.keys()
    return tables
