"""Somebody who types what a page says, block after block, in an installation of one's own."""

import ast
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from urllib.parse import urlencode

import psycopg2
from psycopg2.extensions import parse_dsn

from tests.conftest import TestDatabase
from tests.documents.blocks import Block, commands, session
from tests.terminal.conftest import Done
from weir.annex.declarations.reading import read_text
from weir.settings import load

_FILE = re.compile(r"# (?:\w+/)*(\w+\.\w+)\b")
_NUMBER = re.compile(r"\d[\d:T+.,-]*")


class Reader:
    """What a reader of one page has: a folder, a database and the names of its programs."""

    def __init__(
        self,
        home: Path,
        test_database: TestDatabase,
        weir: Callable[..., Done],
        superuser: str,
        known: dict[str, object],
    ) -> None:
        self.home, self.test_database, self.weir = home, test_database, weir
        self.superuser, self.known = superuser, known
        asked = urlencode({**parse_dsn(test_database.dsn), "options": "-csearch_path=weir"})
        self.places = {  # what pages write for what is elsewhere in each installation
            "/data/": f"{home}/",
            "host=db dbname=weir user=weir_owner": test_database.owner_dsn,
            "//reader@host/weir?options=-csearch_path%3Dweir": f"//?{asked}",
        }

    def play(self, block: Block) -> None:
        """Type a block, and compare what it prints with what is shown."""
        text = block.text
        for written, meant in self.places.items():
            text = text.replace(written, meant)
        if name := _FILE.match(text):
            (self.home / name[1]).write_text(text)
        said = getattr(self, f"_{block.language}")(text, str(block))
        if block.prints is not None:
            assert plain(said) == plain(block.prints), f"{block}:\n{said}"

    def _sh(self, text: str, where: str) -> str:
        return "".join(self._type(line, where) for line in commands(text))

    def _console(self, text: str, where: str) -> str:
        for typed, below in session(text):
            said = self._type(typed, where)
            if below:
                assert shows(below, said), f"{where}: {typed}:\n{said}"
        return ""

    def _type(self, line: str, where: str) -> str:
        words = shlex.split(line, comments=True)
        if words[:3] == ["weir", "psql", "-c"]:
            self._sql(words[3], where)
            return ""
        if words[0] == "weir":
            done = self.weir(*words[1:])
            assert done.status == 0, f"{where}: {line}: {done.err}"
            return done.err + done.out
        line = re.sub(r"(^|\s)python ", rf"\1{sys.executable} ", line)
        ended = subprocess.run(
            ["bash", "-c", line], cwd=self.home, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"{where}: {line}: {ended.stderr}"
        return ended.stdout

    def _python(self, text: str, where: str) -> str:
        said = StringIO()
        code = compile(ast.parse(text), where, "exec")
        with redirect_stdout(said):
            exec(code, self.known)  # noqa: S102 - it is ours
        return said.getvalue()

    def _sql(self, text: str, where: str) -> str:
        """Ask as somebody who may do everything. What changes logins, which all tests share, is
        taken back."""
        connection = psycopg2.connect(self.superuser)
        try:
            connection.cursor().execute(text)
            if "ROLE" in text or "LOGIN" in text:
                connection.rollback()
            connection.commit()
        except psycopg2.errors.DuplicateObject as error:
            if "CREATE ROLE" not in text:  # which another test of this server has
                raise AssertionError(f"{where}: {error}") from error
        except psycopg2.Error as error:
            raise AssertionError(f"{where}: {error}") from error
        finally:
            connection.close()
        return ""

    def _toml(self, text: str, where: str) -> str:
        (self.home / "shown.toml").write_text(text)
        assert load({"WEIR_CONFIG": str(self.home / "shown.toml")}) is not None, where
        assert tomllib.loads(text), where
        return ""

    def _yaml(self, text: str, where: str) -> str:
        assert read_text(text), where
        (self.home / "shown.yaml").write_text(text)
        return self._type("weir apply shown.yaml --dry-run", where)

    def _json(self, text: str, where: str) -> str:
        assert json.loads(text), where
        return ""


def shows(shown: str, said: str) -> bool:
    """Say whether lines are those that were printed; a line `...` is for any others."""
    lines = [".*" if line == "..." else re.escape(line) for line in plain(shown)]
    return re.fullmatch("\n".join(lines), "\n".join(plain(said)), re.DOTALL) is not None


def plain(said: str) -> list[str]:
    """Return what was printed, without its numbers and times."""
    return [_NUMBER.sub("0", " ".join(line.split())) for line in said.strip().splitlines()]
