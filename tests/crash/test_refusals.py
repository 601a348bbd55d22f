"""A statement that Postgres refuses (a time limit, a right that was taken away) leaves nothing half
done: each operation is refused at every statement and COMMIT in turn, and asked for again."""

import itertools
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

import weir
from tests.chance import some
from tests.conftest import TestDatabase
from tests.crash.fault_points import Scene, Undisturbed
from tests.crash.test_fault_points import AGAIN_IS_MORE, SCENES
from tests.world.streams import Lane, database_of_file
from weir.database.connection import Database
from weir.errors import WeirError
from weir.programs.opening import shared
from weir.settings import Settings

STATES = {"a time limit": "57014", "a right": "42501"}


class Refusals:
    """Has Postgres refuse one statement or COMMIT of a database: the one of number `at`, if any."""

    def __init__(self, database: Database, state: str, at: int | None = None) -> None:
        self.seen: list[str] = []
        self._refuse = f"RAISE EXCEPTION 'refused' USING ERRCODE = '{state}'"
        self._at = at
        event.listen(
            database.engine,
            "before_cursor_execute",
            lambda *sent: self._statement(sent[2], sent[3]),
            retval=True,
        )

        class Refused(database.cursor_alone):  # type: ignore[misc, name-defined]
            def execute(cursor, query: str, given: Any = None) -> Any:
                return super().execute(*self._statement(query, given))

        database.cursor_alone = Refused
        dialect: Any = database.engine.dialect
        self._commit, dialect.do_commit = dialect.do_commit, self._refused_commit

    def _now(self, what: str) -> bool:
        self.seen.append(what)
        return len(self.seen) - 1 == self._at

    def _statement(self, statement: str, given: Any) -> tuple[str, Any]:
        if self._now(" ".join(statement.split())[:60]):
            return f"DO $$ BEGIN {self._refuse}; END $$", {}
        return statement, given

    def _refused_commit(self, connection: Any) -> None:
        if self._now("COMMIT"):
            with connection.cursor() as cursor:  # as a constraint that is checked at the end does
                cursor.execute(
                    f"""CREATE FUNCTION pg_temp.refuse() RETURNS trigger LANGUAGE plpgsql
                    AS $$ BEGIN {self._refuse}; END $$;
                    CREATE TEMP TABLE refused (i integer);
                    CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON pg_temp.refused
                        DEFERRABLE INITIALLY DEFERRED
                        FOR EACH ROW EXECUTE FUNCTION pg_temp.refuse();
                    INSERT INTO pg_temp.refused VALUES (1)"""
                )
        self._commit(connection)


database = database_of_file


def again(database: Database) -> Database:
    """Another set of connections."""
    return Database(database._dsn, patience=10.0, connect_patience=10.0)


@pytest.mark.random
@pytest.mark.parametrize("made", SCENES, ids=lambda made: made.__name__)
def test_refused_anywhere_and_asked_for_again_it_is_done_once(
    made: Callable[[Lane], Scene], database: Database
) -> None:
    def scene() -> Scene:
        return made(Lane.made(database, retention="consumed"))

    never, once, twice = (Undisturbed.of(scene(), database, times) for times in range(3))
    assert (once.state == twice.state) == (made not in AGAIN_IS_MORE)
    undisturbed = again(database)
    refusals = Refusals(undisturbed, "57014")
    scene().operation(undisturbed)
    undisturbed.dispose()
    assert refusals.seen
    all_of_them = itertools.product(enumerate(refusals.seen), STATES.values())
    for (number, moment), state in some(all_of_them, made.__name__, least=2):
        refused, there = again(database), scene()
        Refusals(refused, state, number)
        # Some report what they could not do for one of many, and go on.
        with suppress(DBAPIError, WeirError):
            there.operation(refused)
        refused.dispose()
        if refusals.seen.count("COMMIT") <= 1:
            assert there.state(database) == never.state, f"half done, {state} at {moment}"
        mended = Undisturbed.of(there, database, 1)
        assert mended in (once, twice), f"refused at {moment}"


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_an_append_that_is_refused_anywhere_ends_aborted_or_committed(
    state: str, test_database: TestDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = test_database.open()
    settings = Settings(
        state=tmp_path, database=database._dsn, warehouse=str(tmp_path / "warehouse"),
        input_roots=(), output_roots=(),
    )  # fmt: skip
    table = pa.table({"key": ["a", "b", "c"]})

    def append(lane: Lane, at: int | None) -> Refusals:
        one = again(database)
        made = Refusals(one, state, at)
        refused = pytest.raises((DBAPIError, WeirError), match="refused")
        with nullcontext() if at is None else refused:
            store = weir.StreamStore(settings, one)
            store.append(str(lane.name), table, writer_id="w", batch_id="b")
        return made

    append(Lane.made(database, retention="consumed"), None)  # notes where the warehouse is
    statements = append(Lane.made(database, retention="consumed"), None).seen
    assert len(statements) >= 5
    for number, moment in some(enumerate(statements), state, least=3):
        lane = Lane.made(database, retention="consumed")
        append(lane, number)
        found = [
            state for (state,) in lane.rows("SELECT state FROM transaction WHERE stream_id = :s")
        ]
        assert found in ([], ["aborted"], ["committed"]), f"refused at {moment}"
        assert sum(lane.sizes().values()) == (3 if found == ["committed"] else 0)
        append(lane, None)
        assert len(shared(settings).read(str(lane.name))) == 3, f"refused at {moment}"
