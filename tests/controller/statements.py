"""Statements as they are sent, with what the functions do that they call."""

import re
from functools import cache

from weir.database.migrate import sql_folder

LOCK = re.compile(r"FOR (?:NO KEY |KEY )?(?:UPDATE|SHARE)")
WRITE = re.compile(r"\b(?:INSERT INTO|DELETE FROM|(?<!KEY )(?<!FOR )(?<!DO )UPDATE) (\w+)")
_FUNCTION = re.compile(
    r"CREATE OR REPLACE FUNCTION weir(?:_internal)?\.(\w+)\(.*?AS \$\$(.*?)\$\$", re.DOTALL
)


@cache
def functions() -> dict[str, str]:
    """Return, by name, the bodies of the functions that lock or write, or call one that does."""
    texts = [path.read_text() for path in sorted(sql_folder().glob("functions/*.sql"))]
    bodies = {name: body for text in texts for name, body in _FUNCTION.findall(text)}
    found = {name: body.replace("weir_internal.", "") for name, body in bodies.items()}
    does = {name for name, body in found.items() if LOCK.search(body) or WRITE.search(body)}
    calls = re.compile(rf"\b({'|'.join(sorted(does))})\(")
    return {name: body for name, body in found.items() if name in does or calls.search(body)}


def inlined(statement: str) -> str:
    """Return a statement, or what the functions do that it calls, one calling the other."""
    return " ".join((" ".join(_called_by(statement)) or statement).split())


def _called_by(text: str) -> list[str]:
    called = [body for name, body in functions().items() if re.search(rf"\b{name}\(", text)]
    return [one for body in called for one in (*_called_by(body), body)]
