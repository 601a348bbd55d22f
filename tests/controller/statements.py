"""Statements as they are sent, with what the functions do that they call."""

import re
from functools import cache

from weir.database.migrate import sql_folder

LOCK = re.compile(r"FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)")
WRITE = re.compile(r"\b(?:INSERT INTO|DELETE FROM|(?<!KEY )(?<!FOR )(?<!DO )UPDATE) (\w+)")
_READ = re.compile(r"\b(?:FROM|JOIN|USING) (\w+)")
_CALL = re.compile(r"\b(\w+)\(")
_FUNCTION = re.compile(
    r"CREATE OR REPLACE FUNCTION weir(?:_internal)?\.(\w+)\(.*?AS \$\$(.*?)\$\$", re.DOTALL
)
_VIEW = re.compile(r"CREATE OR REPLACE VIEW weir\.(\w+)(?: \([^)]*\))? AS\b(.*?);\n", re.DOTALL)


@cache
def bodies() -> dict[str, str]:
    """Return the bodies of all functions by name."""
    texts = [path.read_text() for path in sorted(sql_folder().glob("functions/*.sql"))]
    return {
        name: body.replace("weir_internal.", "")
        for text in texts
        for name, body in _FUNCTION.findall(text)
    }


@cache
def views() -> dict[str, str]:
    """Return the queries of all views by name."""
    texts = [path.read_text() for path in sorted(sql_folder().glob("views/*.sql"))]
    return {
        name: query.replace("weir_internal.", "")
        for text in texts
        for name, query in _VIEW.findall(text)
    }


@cache
def functions() -> dict[str, str]:
    """Return, by name, the bodies of the functions that lock or write, or call one that does."""
    found = bodies()
    does = {name for name, body in found.items() if LOCK.search(body) or WRITE.search(body)}
    calls = re.compile(rf"\b({'|'.join(sorted(does))})\(")
    return {name: body for name, body in found.items() if name in does or calls.search(body)}


def inlined(statement: str) -> str:
    """Return a statement, or what the functions do that it calls, one calling the other."""
    return " ".join((" ".join(_called_by(statement)) or statement).split())


def _called_by(text: str) -> list[str]:
    called = [body for name, body in functions().items() if re.search(rf"\b{name}\(", text)]
    return [one for body in called for one in (*_called_by(body), body)]


def read_by(statement: str) -> set[str]:
    """Return the tables that a statement reads, itself or by the functions and views it names."""
    tables, to_do, done = set(), [statement], set()
    while to_do:
        text = to_do.pop()
        named = {name: views().get(name) for name in _READ.findall(text)}
        tables |= {name for name, query in named.items() if query is None}
        called = {name: bodies().get(name) for name in _CALL.findall(text)}
        to_do += [body for name, body in {**named, **called}.items() if body and name not in done]
        done |= named.keys() | called.keys()
    return tables
