"""Finds the moments at which an operation can be killed, and kills a real process at each of them.

A moment is before a statement, and before and after a COMMIT or the change of a file. (After a
statement is before the next one.)
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyarrow import fs
from sqlalchemy import event, text

from tests.chance import some
from tests.controller.interleave import plain, state_of
from tests.controller.operations import Operation
from tests.crash.forks import Child
from tests.reader_groups.states import state_of_group, told
from tests.watching import watch_alone
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.model.names import StreamName

# The audit events that Python raises before it changes a file.
CHANGES = {"os.remove", "os.rmdir", "os.rename", "os.mkdir", "os.link", "os.symlink", "os.truncate"}


class Moments:
    """Notes the moments of this process; `last`: the number of the one at which it dies."""

    def __init__(self, last: int | None) -> None:
        self.seen: list[str] = []
        self._last = last

    def __call__(self, what: str) -> None:
        if len(self.seen) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        self.seen.append(what)

    def around(self, what: str, work: Callable[..., Any]) -> Callable[..., Any]:
        """Return the same work with a moment before and after it."""

        def watched(*given: Any, **named: Any) -> Any:
            self(f"before {what}")
            result = work(*given, **named)
            self(f"after {what}")
            return result

        return watched

    def of_database(self, database: Database) -> None:
        """Note the statements that a database sends."""

        def said(when: str, statement: str) -> None:
            self(f"{when} {' '.join(statement.split())[:60]}")

        engine = database.engine
        event.listen(engine, "before_cursor_execute", lambda *s: said("before", s[2]))
        # SQLAlchemy has an event before a commit, and none after it.
        dialect: Any = engine.dialect
        dialect.do_commit = self.around("COMMIT", dialect.do_commit)
        watch_alone(database, before=partial(said, "before"), after=partial(said, "after"))

    def of_files(self, folder: Path) -> None:
        """Note the changes below a folder, by Python and by pyarrow. What notes them can't be
        removed, so use this only in a process that ends soon."""

        def heard(name: str, given: tuple[Any, ...]) -> None:
            writes = name == "open" and isinstance(given[2], int) and given[2] & os.O_ACCMODE
            where = str(given[0])
            if name in ("os.remove", "os.rmdir") and given[1] != -1:  # below an open folder
                where = os.path.join(os.readlink(f"/proc/self/fd/{given[1]}"), where)
            if (name in CHANGES or writes) and where.startswith(str(folder)):
                self(f"before {name}")

        sys.addaudithook(heard)
        fs.LocalFileSystem = _files_with(self)


def _files_with(moments: Moments) -> type[fs.LocalFileSystem]:
    class Watched(fs.LocalFileSystem):  # type: ignore[misc]  # pyarrow has no types
        """Tells of what it changes."""

    for name in ("create_dir", "delete_file", "move", "open_output_stream"):
        setattr(Watched, name, moments.around(name, getattr(Watched, name)))
    return Watched


@dataclass(frozen=True)
class Scene:
    """An operation, and the streams and groups that it changes; made anew for each kill."""

    names: Sequence[StreamName]
    operation: Operation
    groups: Sequence[str] = ()
    lanes: Sequence[Lane] = ()  # what the groups read

    def state(self, database: Database) -> tuple[str, ...]:
        """Return all that is known about the streams and groups."""
        groups = [line for g in self.groups for line in state_of_group(database, g, self.lanes)]
        return (*state_of(database, *self.names), *groups)


@dataclass(frozen=True)
class Undisturbed:
    """What is there when an operation was asked for so many times, and what it returned last."""

    state: tuple[str, ...]
    result: str

    @classmethod
    def of(cls, scene: Scene, database: Database, times: int) -> "Undisturbed":
        result = None
        for _ in range(times):
            result = plain(scene.operation(database))
        return cls(scene.state(database), told(result, scene.groups, scene.lanes))


def kill_everywhere(
    database: Database, folder: Path, scene: Callable[[], Scene], *, again_is_more: bool = False
) -> None:
    """Kill an operation at each of its moments, ask for it again, and check that it was done once.

    The run's seed chooses the moments. `again_is_more`: to ask twice is to do more (another
    attempt, another token).
    """
    never, once, twice = (Undisturbed.of(scene(), database, times) for times in range(3))
    assert (once.state == twice.state) != again_is_more
    moments = moments_of(database._dsn, scene().operation, folder)
    assert any(moment.endswith("COMMIT") or moment.startswith("after") for moment in moments)
    assert any(moment.startswith("before") and not moment.endswith("COMMIT") for moment in moments)
    for number, moment in some(enumerate(moments), *moments, least=3):
        killed = scene()
        kill_at(database._dsn, killed.operation, folder, number)
        if moments.count("before COMMIT") == 1:
            left = once if moment == "after COMMIT" else never
            assert killed.state(database) == left.state, f"half done, {moment}"
        mended = Undisturbed.of(killed, database, 1)
        assert mended in (once, twice), f"killed {moment}"


def moments_of(dsn: str, operation: Operation, folder: Path) -> list[str]:
    """Run an operation in a process of its own, to its end. Return the moments that it passed."""
    # The first use of a warehouse notes where it is, which those that follow do not.
    placed = text("UPDATE installation SET warehouse = coalesce(warehouse, 'somewhere')")
    Database(dsn, patience=10.0, connect_patience=10.0).transaction(lambda c: c.execute(placed))
    status, said = _in_a_process(dsn, operation, folder, None)
    assert status == 0, said
    return list(json.loads(said))


def kill_at(dsn: str, operation: Operation, folder: Path, moment: int) -> None:
    """Run an operation in a process of its own, and kill the process at a moment."""
    status, said = _in_a_process(dsn, operation, folder, moment)
    assert status == -signal.SIGKILL, f"it lived ({status}): {said}"


def _in_a_process(
    dsn: str, operation: Operation, folder: Path, last: int | None
) -> tuple[int, str]:
    def work() -> str:
        moments = Moments(last)
        database = Database(dsn, patience=10.0, connect_patience=10.0)
        moments.of_database(database)
        moments.of_files(folder)
        operation(database)
        return json.dumps(moments.seen)

    return Child(work).wait()
