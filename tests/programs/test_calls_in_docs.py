"""What the pages write to be typed can be typed."""

import ast
import inspect
import re
from collections.abc import Iterator

import pytest

from tests.rooms import LIBRARY, REPOSITORY
from weir.programs.store import StreamStore

PAGES = [*sorted((REPOSITORY / "docs").glob("*.md")), REPOSITORY / "README.md"]
_BLOCK = re.compile(r"^ *```python.*?\n(.*?)^```", re.M | re.S)


def calls() -> Iterator[tuple[str, ast.Call]]:
    """Return the calls of methods of `store` in all blocks of Python."""
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text()):
            try:
                tree = ast.parse(block)
            except SyntaxError:  # a signature, or a part of a statement
                continue
            for one in ast.walk(tree):
                if isinstance(one, ast.Call) and re.fullmatch(r"store\.\w+", ast.unparse(one.func)):
                    yield page.name, one


def signatures() -> dict[str, inspect.Signature]:
    """Return the signatures of the methods that are made of forms."""
    found = {}
    tree = ast.parse((LIBRARY / "programs" / "methods.pyi").read_text())
    for one in ast.walk(tree):
        if isinstance(one, ast.FunctionDef):
            kinds = {
                inspect.Parameter.POSITIONAL_OR_KEYWORD: one.args.args[1:],
                inspect.Parameter.KEYWORD_ONLY: one.args.kwonlyargs,
            }
            found[one.name] = inspect.Signature([
                inspect.Parameter(a.arg, kind, default=None)
                for kind, some in kinds.items() for a in some
            ])  # fmt: skip
    return found


@pytest.mark.parametrize(("page", "call"), calls())
def test_a_call_of_a_page_has_the_arguments_that_the_method_takes(
    page: str, call: ast.Call
) -> None:
    assert isinstance(call.func, ast.Attribute)
    name = call.func.attr
    signature = signatures().get(name)
    if signature is None:
        signature = inspect.signature(getattr(StreamStore, name))
        call.args.insert(0, ast.Name("self"))
    signature.bind(*call.args, **{one.arg: one.value for one in call.keywords if one.arg})
