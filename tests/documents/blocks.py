"""What the pages that somebody wrote say to type: their blocks, and the commands in their lines."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from tests.rooms import REPOSITORY

# Made from the database and the code, and compared with them (tests/sql, tests/programs).
GENERATED = {"docs/sql.md", "docs/python.md", "docs/cookbook.md"}
PAGES = [
    name for path in [*sorted((REPOSITORY / "docs").glob("*.md")), REPOSITORY / "README.md",
                      REPOSITORY / "CONTRIBUTING.md"]
    if (name := str(path.relative_to(REPOSITORY))) not in GENERATED
]  # fmt: skip
# Why a block is not run: what stands behind `not run:` on its line.
REASONS = {
    "a cluster": "hosts of Spark, Kubernetes or Prometheus that a test does not have",
    "a real store": "an object store with its keys",
    "the network": "packages that are fetched when it is typed",
    "minutes": "a target of make that is itself a test, or plays all of them",
    "a notebook": "it shows itself in a browser",
    "a part": "lines out of a larger program, of which the text says the rest",
}
# What follows the language on a block's line; nothing: tests/documents/test_pages.py plays it.
MARKS = {
    "spark": "the same with a session of Spark, at release",
    "airflow": "a file of DAGs, which tests/airflow/test_examples_in_docs.py has Airflow read",
    "by": "a test by itself, which is named",
    "not run:": "one of REASONS",
}
SHOWN = {"text"}  # a figure, or what the block above it prints
TYPED = {"console", "dockerfile", "js", "json", "python", "sh", "sql", "toml", "yaml"}
_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*) ?(?P<mark>.*)\n(?P<text>(?:.*\n)*?)(?P=indent)```$", re.M
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    language: str
    mark: str
    text: str
    prints: str | None = None  # the figure just below it

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Say whether this test plays it, with or without Spark."""
        return self.language in TYPED and self.mark in ("", "spark")


def blocks(page: str) -> list[Block]:
    """Return the blocks of a page, in order."""
    text = (REPOSITORY / page).read_text()
    found = list(_FENCE.finditer(text))
    made = []
    for one, after in zip_longest(found, found[1:]):
        below = None
        if after and after["language"] in SHOWN and not text[one.end() : after.start()].strip():
            below = after["text"]
        inner = re.sub(rf"^{one['indent']}", "", one["text"], flags=re.M)
        line = text.count("\n", 0, one.start()) + 1
        made.append(Block(page, line, one["language"], one["mark"], inner, below))
    return made


def commands(text: str) -> list[str]:
    """Return the lines of a shell, each with what continues it."""
    lines = re.sub(r"\\\n *", "", text).splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


def session(text: str) -> Iterator[tuple[str, str]]:
    """Return what is typed in a console, each with what is shown below it."""
    for typed, below in re.findall(r"^\$ (.*(?:\n {6}.*)*)\n((?:(?!\$ ).*\n)*)", text, re.M):
        yield typed.replace("\\", "").replace("\n      ", " "), below


def spans(page: str) -> Iterator[str]:
    """Return what stands between backticks in the lines of a page, outside of its blocks."""
    text = _FENCE.sub("", (REPOSITORY / page).read_text())
    for one in re.findall(r"`([^`]+)`", text):
        yield " ".join(one.replace("\\|", "|").split())
