"""The commands and statements between the lines of a page are ones that are taken as they stand."""

import re
import shlex
import tomllib
from argparse import ArgumentError
from collections.abc import Iterator

import psycopg2
import pytest

from tests.conftest import TestDatabase
from tests.documents.blocks import PAGES, blocks, commands, session, spans
from tests.rooms import REPOSITORY
from weir.errors import InvalidInput
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.terminal.__main__ import LOCAL, parser

_OPEN = re.compile(r"\.\.\.|<\w+>")  # a statement of which something is left out
_ASKED = re.compile(r"(SELECT|REVOKE|ALTER ROLE|CREATE ROLE) .+|GRANT .+ TO .+")
LOGINS = ("weir_nightly", "second_watch")  # of the reader
_ALONE = "expected one argument|expected at least one argument|are required"  # only named there


def typed(page: str) -> Iterator[str]:
    """Return all that a page says to type into a shell, also where nobody runs it."""
    yield from spans(page)
    for block in blocks(page):
        if block.language == "sh":
            yield from commands(block.text)
        elif block.language == "console":
            yield from (line for line, _ in session(block.text))


def options(line: str) -> Iterator[list[str]]:
    """Return the words of a command as they can be typed: without its brackets, which are around
    what may be left out, with the first of several choices."""
    line = re.sub(r"\[([^]|]*)(\|[^]]*)?\](?!\w)", r"\1", line)
    for one in re.split(r" && | \| ", line):
        yield shlex.split(one, comments=True)


def wrong(words: list[str]) -> str:
    """Return why the command line does not take a command, or nothing."""
    if words[1:2] and words[1] in LOCAL:
        return ""
    try:
        parser(words[1] if len(words) > 1 else "").parse_args(words[1:])
    except (InvalidInput, ArgumentError) as error:
        return "" if re.search(_ALONE, str(error)) else str(error)
    except SystemExit as ended:
        return "" if ended.code == 0 else str(ended)
    return ""


def targets() -> dict[str, set[str]]:
    """Return the targets of make, and the variables that they take."""
    text = (REPOSITORY / "Makefile").read_text()
    named = set(re.findall(r"^([a-z-]+):", text, re.M))
    return {"targets": named, "variables": set(re.findall(r"^([A-Z]+) [?:]?=", text, re.M))}


def extras() -> set[str]:
    """Return the extras of the package."""
    made = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    return set(made["project"]["optional-dependencies"])


@pytest.mark.parametrize("page", PAGES)
def test_a_command_that_is_named_is_one_that_is_taken(page: str) -> None:
    for line in typed(page):
        if not re.match(r"(weir|make|pip) ", line):
            continue
        for words in options(line):
            if words[0] == "weir":
                assert not (why := wrong(words)), f"{line}: {why}"
            elif words[0] == "make":
                for word in words[1:]:
                    name, assigned, _ = word.partition("=")
                    assert name in targets()["variables" if assigned else "targets"], line
            elif words[:2] == ["pip", "install"]:
                for some in re.findall(r"\[(.*?)\]", line):
                    assert set(some.split(",")) <= extras(), line


@pytest.mark.parametrize("page", PAGES)
def test_a_statement_that_is_named_is_one_that_is_taken(
    page: str, postgres_server: EmbeddedPostgres, test_database: TestDatabase
) -> None:
    asked = [one for one in spans(page) if _ASKED.fullmatch(one) and not _OPEN.search(one)]
    if not asked:
        return
    connection = psycopg2.connect(postgres_server.dsn(test_database.name, "postgres"))
    for statement in asked:
        try:
            connection.cursor().execute(f"CREATE ROLE {'; CREATE ROLE '.join(LOGINS)}")
            connection.cursor().execute(statement)
        except psycopg2.Error as error:
            # A stream of the reader's own; pages with blocks make theirs.
            if error.diag.message_detail != "stream_not_found":
                raise AssertionError(f"{page}: {statement}: {error}") from error
        finally:
            connection.rollback()
    connection.close()
