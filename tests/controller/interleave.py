"""Two operations at one time, made deterministic: the first is stopped at each of its statements in
turn, while the second runs to its end or blocks. What comes out must be one order or the other.
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, is_dataclass
from threading import Event
from typing import Any

from sqlalchemy import event

from tests.controller.operations import Operation
from tests.controller.statements import LOCK, WRITE, inlined
from tests.watching import watch_alone
from tests.world.streams import rows, waiting_for_a_lock
from weir.database.connection import Database
from weir.model.names import StreamName

COMMIT = "COMMIT"
ALONE = "alone: "


@dataclass
class Scene:
    """Streams, and two operations on them; made anew for each run."""

    names: Sequence[StreamName]
    first: Operation
    second: Operation

    def swapped(self) -> "Scene":
        """Return the same scene with the other operation as the first."""
        return Scene(self.names, self.second, self.first)


@dataclass(frozen=True)
class Outcome:
    """What each of the operations returned or raised, and what they left."""

    first: Any
    second: Any
    state: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """One run of a scene: the statement before which the first operation was stopped."""

    statement: str
    had_locks: bool  # the first one, when it was stopped
    blocked: bool  # the second one, until the first went on
    outcome: Outcome


class Stepper:
    """A session that can be stopped before any of its statements."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.errors: list[str] = []  # of Postgres: a deadlock would be retried and go unseen
        self.statements: list[str] = []
        self.stopped, self.go_on = Event(), Event()
        self._stop_before: int | None = None
        engine = database.engine
        event.listen(engine, "before_cursor_execute", lambda *given: self._reached(given[2]))
        event.listen(engine, "commit", lambda _: self._reached(COMMIT))
        event.listen(
            engine, "handle_error", lambda c: self.errors.append(str(c.original_exception))
        )
        # A statement that is a transaction by itself releases its locks before another is sent.
        watch_alone(
            database,
            before=lambda statement: self._reached(ALONE + statement),
            failed=lambda error: self.errors.append(str(error)),
        )

    def arm(self, stop_before: int | None) -> None:
        """Forget what was, and stop before the statement of this number."""
        self.statements.clear()
        self.stopped.clear()
        self.go_on.clear()
        self._stop_before = stop_before

    def _reached(self, statement: str) -> None:
        if len(self.statements) == self._stop_before:
            self.stopped.set()
            assert self.go_on.wait(120), "nobody lets it go on"
        self.statements.append(statement)

    def has_locks(self) -> bool:
        """Return whether the open transaction has locked or written a row."""
        ends = [
            i
            for i, statement in enumerate(self.statements)
            if statement == COMMIT or statement.startswith(ALONE)
        ]
        mine = self.statements[ends[-1] + 1 :] if ends else self.statements
        return any(LOCK.search(one) or WRITE.search(one) for one in map(inlined, mine))


@dataclass
class Stage:
    """Two sessions, and one that watches."""

    stepper: Stepper
    other: Stepper
    watcher: Database

    def alone(self, scene: Scene) -> Outcome:
        """Do the first operation, then the second."""
        self.stepper.arm(None)
        first = _result(scene.first, self.stepper.database)
        self.other.arm(None)
        second = _result(scene.second, self.other.database)
        return self._outcome(scene, first, second)

    def runs(self, made: Callable[[], Scene]) -> list[Run]:
        """Do a run for each statement of the first operation, on a scene of its own."""
        self.alone(made())
        return [self._run(made(), number) for number in range(len(self.stepper.statements))]

    def _run(self, scene: Scene, number: int) -> Run:
        self.stepper.arm(number)
        self.other.arm(None)
        with ThreadPoolExecutor(2) as pool:
            try:
                first = pool.submit(_result, scene.first, self.stepper.database)
                assert self.stepper.stopped.wait(60), "it never came to this statement"
                had_locks = self.stepper.has_locks()
                second = pool.submit(_result, scene.second, self.other.database)
                blocked = self._blocks(second)
            finally:
                self.stepper.go_on.set()
            outcome = self._outcome(scene, first.result(120), second.result(120))
        return Run(self.stepper.statements[number], had_locks, blocked, outcome)

    def _blocks(self, running: "Future[Any]") -> bool:
        """Wait until the operation waits for a lock, or has ended; return whether it waits."""
        end = time.monotonic() + 60
        while not running.done():
            if waiting_for_a_lock(self.watcher):
                return True
            assert time.monotonic() < end, "it neither ends nor waits for a lock"
            time.sleep(0.002)
        return False

    def _outcome(self, scene: Scene, first: Any, second: Any) -> Outcome:
        errors = self.stepper.errors + self.other.errors
        assert not errors, errors
        return Outcome(plain(first), plain(second), state_of(self.watcher, *scene.names))


@contextmanager
def stage_on(database: Database) -> Iterator[Stage]:
    """Yield two sessions, and one that watches."""
    sessions = [Database(database._dsn, patience=60.0, connect_patience=60.0) for _ in range(2)]
    stepper, other = map(Stepper, sessions)
    yield Stage(stepper, other, database)
    for session in sessions:
        session.dispose()


def _result(operation: Operation, database: Database) -> Any:
    try:
        return operation(database)
    except Exception as error:
        return error


# What differs between two streams to which the same was done: names, ids, times, wordings.
_OWN = set(
    "stream stream_id stream_name group_id scope name object request_id reason clock".split()
)
_TIMES = set(
    """created_at opened_at lease_until ended_at garbage_since retained_at released_at
    subscriber_since decided_at recorded_at since seen_at loads commit_interval rate
    final_after""".split()
)
_NUMBERS = {"number", "file_id"}  # that are given out over all streams
_CLOCKS = set("clock newest_read passed_clock last_clock sealed_clock created_at".split())
_TABLES = """stream stream_schema epoch segment segment_tail transaction transaction_input data_file
    time_index packed_commits reader_group_segment reader_group_stream stream_cut retention_decision
    scale_decision hot_key""".split()
# Only the number of groups is compared, because their names are others in each scene.
_NAMES = {"held_by", "truncated_past", "timed_out"}


def plain(result: Any) -> Any:
    """Return what came back, without what is this stream's alone."""
    if isinstance(result, Exception):
        return type(result)
    if is_dataclass(result) and not isinstance(result, type):
        result = asdict(result)
    if isinstance(result, tuple) and hasattr(result, "_asdict"):
        result = result._asdict()
    if isinstance(result, dict):
        return {
            key: plain(_nameless(key, value)) for key, value in result.items() if key not in _OWN
        }
    return [plain(one) for one in result] if isinstance(result, list | tuple) else result


def state_of(database: Database, *names: StreamName) -> tuple[str, ...]:
    """Return all that is known about streams, in words that are the same for streams with the same
    past. Ids are left out, and of clocks only their order is told."""
    return tuple(line for name in names for line in _state_of_one(database, name))


def _state_of_one(database: Database, name: StreamName) -> list[str]:
    queries = [
        f"""SELECT '{table}' AS what, to_jsonb(t) AS row, t.stream_id FROM {table} t
        JOIN this ON this.stream_id = t.stream_id"""
        for table in _TABLES
    ]
    found = rows(
        database,
        f"""WITH this AS (SELECT max(stream_id) AS stream_id FROM stream
                          WHERE scope = :scope AND name = :name)
        {" UNION ALL ".join(queries)}
        UNION ALL SELECT 'garbage', to_jsonb(g), this.stream_id FROM garbage g
            JOIN this ON g.path LIKE this.stream_id || '/%'
        UNION ALL SELECT 'request', jsonb_build_object('operation', r.operation), this.stream_id
            FROM request r JOIN this ON r.object = :full""",
        scope=name.scope, name=name.name, full=str(name),
    )  # fmt: skip
    clocks = sorted(
        {value for one in found for key, value in one.row.items() if _is_clock(key, value)}
    )
    rank = {clock: number for number, clock in enumerate(clocks)}

    def said(one: Any) -> str:
        kept = {
            key: rank[value] if _is_clock(key, value) else _nameless(key, value)
            for key, value in one.row.items()
            if _is_clock(key, value) or key not in _OWN | _TIMES | _NUMBERS
        }
        return f"{one.what} {json.dumps(kept, sort_keys=True)}".replace(f'"{one.stream_id}/', '"')

    return sorted(map(said, found))


def _nameless(key: str, value: Any) -> Any:
    if key == "lost":  # per group how many events
        return sorted(value.values())
    if key == "changes" and isinstance(value, list):  # the rate depends on when it was measured
        return [{k: v for k, v in one.items() if k not in _TIMES} for one in value]
    return len(value) if key in _NAMES else value


def _is_clock(key: str, value: Any) -> bool:
    return key in _CLOCKS and isinstance(value, int)
