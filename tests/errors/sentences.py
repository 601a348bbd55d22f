"""Every error that Weir raises on purpose, found in its source: code, class and sentence.

`python -m tests.errors.sentences` writes them to `sentences.txt`.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.rooms import JOBS
from weir.database.connection import RAISED_BY_SQL
from weir.errors import WeirError

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).with_name("sentences.txt")
_RAISE = re.compile(r"RAISE EXCEPTION (?P<text>(?:'(?:[^']|'')*'\s*)+)(?P<rest>[^;]*);")
_USING = re.compile(r"USING ERRCODE = '(?P<state>\w+)'(?:, DETAIL = '(?P<code>\w+)')?")

_OF_ANOTHER = re.compile(r"type\(\w+\)\(|\w+\.__class__\(")


@dataclass(frozen=True, order=True)
class Sentence:
    """An error at one place; in its sentence `{}` stands for each value, and what the front end
    says in its own words is in angle brackets: an operation with its arguments, or one argument."""

    code: str
    kind: str
    text: str
    place: str


def classes() -> dict[str, type[WeirError]]:
    """Return all classes of errors by name."""
    import weir.spark.failures.unreadable  # noqa: F401  # has one of its own

    found, todo = {}, [WeirError]
    while todo:
        one = todo.pop()
        found[one.__name__] = one
        todo += one.__subclasses__()
    return found


def in_python(source: str, place: str) -> Iterator[Sentence]:
    """Yield the errors that a module makes, whether it raises or returns them. Raises ValueError
    for one whose code is not written there as a literal, and for a class that may be called
    elsewhere."""
    known = classes()
    tree = ast.parse(source)
    for line, name in _handed_on(tree, set(known)):
        raise ValueError(f"{place}:{line}: a {name} must be made by a call of its class")
    for scope in ast.walk(tree):
        if not isinstance(scope, (ast.FunctionDef, ast.Module)):
            continue
        local = {
            target.id: node.value
            for node in ast.walk(scope)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in _own(scope):
            if not isinstance(node, ast.Call) or (name := _name(node.func)) not in known:
                continue
            here = f"{place}:{node.lineno}"
            code = node.args[0] if node.args else None
            if not isinstance(code, ast.Constant) or not isinstance(code.value, str):
                raise ValueError(f"{here}: the code of a {name} must be a literal")
            yield Sentence(code.value, name, _template(node.args[1], local), here)


def _handed_on(tree: ast.Module, known: set[str]) -> Iterator[tuple[int, str]]:
    """Yield where the class of an error is used as a value, by line and name. What is made with it
    can't be found.

    To catch it, to test for it and to annotate are not such uses, nor is the table of what SQL
    raises, whose sentences `in_sql` finds.
    """
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.alias) and node.asname and node.name in known:
            yield node.lineno, node.name
        if isinstance(node, ast.Raise) and node.exc and _OF_ANOTHER.match(ast.unparse(node.exc)):
            yield node.lineno, "class that another error has"
        if not isinstance(node, ast.Name) or node.id not in known:
            continue
        inner: ast.AST = node
        outer = parents[node]
        while isinstance(outer, (ast.Tuple, ast.BinOp, ast.Subscript, ast.Dict)):
            inner, outer = outer, parents[outer]
        called = isinstance(outer, ast.Call) and (
            outer.func is node or _name(outer.func) in ("isinstance", "issubclass", "suppress")
        )
        table = isinstance(outer, ast.AnnAssign) and ast.unparse(outer.target) == "RAISED_BY_SQL"
        annotates = isinstance(outer, (ast.arg, ast.AnnAssign, ast.FunctionDef)) and inner in (
            getattr(outer, "annotation", None), getattr(outer, "returns", None)
        )  # fmt: skip
        caught = isinstance(outer, (ast.ExceptHandler, ast.ClassDef))
        if not (called or table or annotates or caught):
            yield node.lineno, node.id


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function, without those of functions in it."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.FunctionDef):
            yield node
            yield from _own(node)


def _name(called: ast.expr) -> str:
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def _template(text: ast.expr, local: dict[str, ast.expr]) -> str:
    if isinstance(text, ast.Constant):
        return str(text.value)
    if isinstance(text, ast.JoinedStr):
        return "".join(_part(p, local) for p in text.values)
    if isinstance(text, ast.Call) and _name(text.func) in FRONT_END:
        return f"<{Reference.of(text)}>"
    if isinstance(text, ast.Name) and text.id in local:
        return _template(local[text.id], {})
    return "{}"


def _part(part: ast.expr, local: dict[str, ast.expr]) -> str:
    """Return a part of an f-string; of values only those are known that front ends say."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    inner = part.value if isinstance(part, ast.FormattedValue) else part
    named = local.get(inner.id) if isinstance(inner, ast.Name) else inner
    if isinstance(named, ast.Call) and _name(named.func) in FRONT_END:
        return f"<{Reference.of(named)}>"
    return "{}"


FRONT_END = {"do", "give", "leave_out", "called"}


@dataclass(frozen=True)
class Reference:
    """What a text says by one of the functions of `weir.front_ends`: the operation of `do`, or the
    argument of the others, and values, None for those that are computed."""

    function: str
    subject: str | None
    arguments: dict[str, Any]

    @classmethod
    def of(cls, call: ast.Call) -> "Reference":
        """Return what a call says."""
        subject = _literal(call.args[0]) if call.args else None
        given = {one.arg: _literal(one.value) for one in call.keywords if one.arg}
        return cls(_name(call.func), subject, given)

    def __str__(self) -> str:
        given = [f"{name}={'{}' if v is None else v}" for name, v in self.arguments.items()]
        words = [] if self.function == "do" else [self.function.replace("_", " ")]
        if self.function != "give":
            words.append(self.subject or "{}")
        return " ".join([*words, *given])


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def references(source: str) -> Iterator[tuple[int, Reference]]:
    """Yield what the texts of a module say in the words of a front end, each with its line."""
    tree = ast.parse(source)
    imported = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "weir.front_ends"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in FRONT_END & imported:
            yield node.lineno, Reference.of(node)


def in_sql(source: str, place: str) -> Iterator[Sentence]:
    """Yield the errors that a file of SQL functions raises for people."""
    for found in _RAISE.finditer(source):
        using = _USING.search(found["rest"])
        kind = RAISED_BY_SQL.get(using["state"]) if using else None
        if using is None or kind is None:  # between functions
            continue
        line = source.count("\n", 0, found.start()) + 1
        text = "".join(re.findall(r"'((?:[^']|'')*)'", found["text"])).replace("''", "'")
        here = f"{place}:{line}"
        if using["code"] is None:
            raise ValueError(f"{here}: an error must have its code as DETAIL")
        yield Sentence(using["code"], kind.__name__, text.replace("%", "{}"), here)


@cache
def sentences() -> list[Sentence]:
    """Return all sentences, sorted by code."""
    found: list[Sentence] = []
    for path in (*sorted((ROOT / "plugins/weir").rglob("*.py")), *sorted(JOBS.glob("*.py"))):
        found += in_python(path.read_text(), str(path.relative_to(ROOT)))
    for path in sorted((ROOT / "sql").rglob("*.sql")):
        if "migrations" not in path.parts:
            found += in_sql(path.read_text(), str(path.relative_to(ROOT)))
    return sorted(found)


def document(found: list[Sentence]) -> str:
    """Return a block per code: its class, and the sentences that it comes with."""
    blocks = []
    for code in sorted({one.code for one in found}):
        of_code = [one for one in found if one.code == code]
        kinds = sorted({one.kind for one in of_code})
        texts = sorted({one.text for one in of_code})
        lines = [f"    {line}" for text in texts for line in text.split("\n")]
        blocks.append("\n".join([f"{code} {' '.join(kinds)}", *lines]))
    return "\n".join(blocks) + "\n"


if __name__ == "__main__":
    GOLDEN.write_text(document(sentences()))
