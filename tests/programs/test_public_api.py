"""What programs use changes only where somebody means it to, and is described, also for type
checkers."""

import difflib
from pathlib import Path

import pytest

from docs.generate_python import (
    DAG_FUNCTIONS,
    OPERATORS,
    STUB,
    TARGET,
    dag_functions,
    document,
    operators,
    signature,
    stub,
)
from tests.programs.public_api import SNAPSHOT, snapshot


def test_a_change_of_what_programs_use_is_meant() -> None:
    was, now = SNAPSHOT.read_text(), snapshot()
    changed = "".join(difflib.unified_diff(was.splitlines(True), now.splitlines(True), n=0))
    assert was == now, (
        f"What programs use has changed:\n{changed}If you mean it, run `make api` and `make docs`, "
        "and tell users in CHANGELOG.md."
    )


def test_a_signature_shows_each_kind_of_argument() -> None:
    def one(a: int, b: "Path" = Path(), *rest: str, c: list[Path] | None = None, **d: int) -> Path:
        raise NotImplementedError

    shown = "one(a: int, b: Path = PosixPath('.'), *rest: str, c: list[Path] | None = None, "
    assert signature("one", one) == shown + "**d: int) -> Path"


@pytest.mark.parametrize(
    ("path", "made"),
    [(TARGET, document), (STUB, stub), (OPERATORS, operators), (DAG_FUNCTIONS, dag_functions)],
    ids=["page", "methods", "operators", "dag_functions"],
)  # fmt: skip
def test_page_and_stubs_are_those_of_the_code(path: Path, made: object) -> None:
    assert callable(made)
    assert path.read_text() == made(), f"run `make docs`: {path.name} is of other signatures"
