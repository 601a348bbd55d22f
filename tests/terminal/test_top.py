"""`weir top`, in a real terminal that a test holds the other end of, and without one."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from sqlalchemy import event

from tests.terminal.conftest import Done
from tests.world.groups import Group
from tests.world.servers import weir_server
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.terminal.top_rows import View, ask
from weir.terminal.top_screen import Screen

Weir = Callable[..., Done]
PLUGINS = Path(__file__).parents[2] / "plugins"
LEFT = "\x1b[?1049l"  # back from the screen of a program to that of the shell


class Person:
    """Who sits before a terminal of `width` times `height`."""

    def __init__(self, *words: str, width: int = 130, height: int = 20) -> None:
        self._mine, its = pty.openpty()
        fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.before = termios.tcgetattr(its)
        self._its = its
        self.seen = ""
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "weir.terminal", "top", *words],
            stdin=its, stdout=its, stderr=its, start_new_session=True,
            env=environment | {"PYTHONPATH": str(PLUGINS), "TERM": "xterm-256color"},
        )  # fmt: skip

    def types(self, keys: str) -> None:
        self.seen = ""
        os.write(self._mine, keys.encode())

    def sees(self, *wanted: str, seconds: float = 300) -> str:
        """Wait until all of these are on a screen that was drawn since the last keys."""
        end = time.monotonic() + seconds
        while not any(all(w in screen for w in wanted) for screen in self.screens()):
            assert time.monotonic() < end, (wanted, self.screens()[-2:])
            self.look()
        return next(s for s in self.screens() if all(w in s for w in wanted))

    def screens(self) -> list[str]:
        plain = re.sub(r"\x1b\[(?!H)[0-9;?]*[A-Za-z]", "", self.seen)
        return plain.split("\x1b[H")

    def look(self) -> None:
        if select.select([self._mine], [], [], 0.2)[0]:
            with suppress(OSError):
                self.seen += os.read(self._mine, 100_000).decode(errors="replace")

    def ends(self) -> int:
        """Wait for the end, and return the status. The terminal is what it was."""
        end = time.monotonic() + 300
        while self.process.poll() is None and time.monotonic() < end:
            self.look()
        self.look()
        assert LEFT in self.seen
        assert termios.tcgetattr(self._its) == self.before
        return self.process.wait(300)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._mine)
        os.close(self._its)


@contextmanager
def looking(*words: str, **size: int) -> Iterator[Person]:
    person = Person(*words, **size)
    try:
        yield person
    finally:
        person.close()


def test_streams_and_groups_are_live_and_keys_choose_what_is_shown(
    weir: Weir, database: Database
) -> None:
    lane, other = (Lane.made(database, name=f"shop/{name}") for name in ("orders", "returns"))
    totals = Group.made(lane).name
    other.append({"0.0": 2})
    lane.append({"0.0": 1234})
    with looking("--every", "0.3") as person:
        first = person.sees("2 streams, by change", "1,234", totals, "q quit")
        assert first.index("shop/orders") < first.index("shop/returns")
        lane.append({"1.0": 1000})
        person.sees("2,234")
        person.types("\t")
        person.sees("1 reader group and stream", "by lag", totals, "2,234")
        person.types("\t/ret")
        assert "shop/orders" not in person.sees("names with: ret", "1 stream,", "shop/returns")
        person.types("\x1b")
        person.sees("2 streams", "shop/orders")
        person.types("o")
        person.sees("by name")
        person.types(" ")
        person.sees("stopped; space goes on")
        person.types("q")
        assert person.ends() == 0


def test_ctrl_c_ends_it_and_leaves_the_terminal_as_it_was(weir: Weir, database: Database) -> None:
    with looking() as person:
        person.sees("there is none yet")
        os.killpg(person.process.pid, signal.SIGINT)
        assert person.ends() == 130


def test_a_database_that_is_away_is_said_and_so_is_its_return(
    weir: Weir, monkeypatch: pytest.MonkeyPatch
) -> None:
    with weir_server() as server:
        monkeypatch.setenv("WEIR_DATABASE", server.dsn("weir", "weir_app"))
        with Database(server.dsn("weir", "weir_app"), patience=60, connect_patience=60) as database:
            lane = Lane.made(database, name="shop/orders")
            lane.append({"0.0": 1007})
            with looking("--every", "0.3", width=200) as person:
                person.sees("1 stream,", "shop/orders", "1,007")
                server.stop()
                person.types("k")
                away = person.sees("can't be reached", "old", "q quit")
                assert "shop/orders" in away  # what it knew
                server.start()
                lane.append({"0.0": 1000})
                back = person.sees("2,007")
                assert "reached" not in back
                person.types("q")
                assert person.ends() == 0


def test_without_a_terminal_it_is_printed_once_and_whole(weir: Weir, database: Database) -> None:
    lane = Lane.made(database, name="shop/a-name-that-is-longer-than-what-fits-beside-others")
    Group.made(lane)
    lane.append({"0.0": 3})
    shown = weir("top").out
    assert "\x1b" not in shown
    assert str(lane.name) in shown
    assert weir("top", "--once", "--groups").out.split()[:2] == ["reader", "group"]
    [row] = weir("top", "--json").json
    assert (row["stream"], row["unread_events"], row["groups"]) == (str(lane.name), 3, 1)
    assert weir("top", "--search", "nothing").out.strip() == "no name has that in it"
    assert "streams are sorted by change or name" in weir("top", "--sort", "lag").err
    assert "from 0.2 to 3600" in weir("top", "--every", "nan").err


def test_a_screen_is_one_statement_for_what_is_shown(database: Database) -> None:
    for n in range(12):
        Group.made(Lane.made(database, name=f"shop/s{n:02}"))
    sent: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *s: sent.append(s[2]))
    for what in ("streams", "groups"):
        answer = ask(database, View(what, "name", skip=3), 5)
        assert [row["stream"][-2:] for row in answer.rows] == ["03", "04", "05", "06", "07"] or (
            what == "groups" and len(answer.rows) == 5
        )
        assert answer.total == 12
    assert len([one for one in sent if "SELECT" in one]) == 2


def row(**changed: Any) -> dict[str, Any]:
    return {
        "stream": "a/b", "events": 5, "bytes": 2_500_000, "segments": 2, "groups": 1,
        "unread_events": 3, "waiting": timedelta(hours=3), "reader_group": "g", "rate": 2.0,
        "state": "active", "unchanged": timedelta(seconds=9), **changed,
    }  # fmt: skip


def printed(width: int, *rows: dict[str, Any]) -> str:
    screen = Screen(View("streams", "name"), rows, len(rows), datetime(2026, 1, 2, tzinfo=UTC))
    console = Console(width=width, height=12, record=True, file=open(os.devnull, "w"))  # noqa: SIM115
    console.print(screen.drawn(width, 12, 0.0))
    return console.export_text()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120, 200])
def test_a_narrow_terminal_has_fewer_columns_and_no_broken_lines(width: int) -> None:
    shown = printed(width, *[row(stream=f"shop/{'long' * 12}{n}") for n in range(30)])
    lines = shown.rstrip("\n").split("\n")
    assert len(lines) <= 12
    assert all(len(line) <= width for line in lines)
    assert "stream" in shown
    assert ("furthest behind" in shown) == (width >= 120)
    assert "2.5 MB" in shown or width < 70


def test_names_are_text_and_neither_markup_nor_controls() -> None:
    shown = printed(150, row(reader_group="[red]x[/red]\x1b[2J"))
    assert r"[red]x[/red]\x1b[2J" in shown
