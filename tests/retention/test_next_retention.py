"""What the next run of retention would do, as people see it before (weir.next_retention). That the
run then does just that, test_schedules compares on random schedules."""

from sqlalchemy import event, text

from tests.world.groups import Group
from tests.world.retention import consume
from tests.world.streams import Lane, rows
from weir.controller.retention_queue import due_streams
from weir.database.connection import Database
from weir.retention.capture import capture
from weir.retention.run import retain

LOCKS = """SELECT c.relname, l.mode FROM pg_locks l JOIN pg_class c ON c.oid = l.relation
    WHERE l.pid = pg_backend_pid() AND l.mode NOT IN ('AccessShareLock')"""


def test_it_names_what_would_go_by_which_rule_and_who_would_lose_it(database: Database) -> None:
    lane = Lane.made(database, retention="size", retain_max_bytes=20)
    subscriber, other = Group.made(lane), Group.made(lane, subscriber=False)
    lane.append({"0.0": 5})
    capture(database)
    lane.append({"0.0": 2})
    capture(database)
    [row] = rows(database, "SELECT * FROM next_retention")
    assert (row.stream, row.retention, row.rule) == (str(lane.name), "size", "max_bytes")
    assert (row.events, row.bytes, row.head) == (5, 50, {"0.0": 5, "1.0": 0})
    assert (row.lost, row.lost_to_others) == ({subscriber.name: 5}, {other.name: 5})
    [report] = retain(database)
    assert (report["events"], report["cut"], report["lost"]) == (5, row.head, row.lost)
    lost = rows(database, "SELECT reader_group, lost_events FROM lag")
    assert dict(map(tuple, lost)) == row.lost | row.lost_to_others


def test_a_stream_that_is_not_due_is_not_in_it(database: Database) -> None:
    lane = Lane.made(database, retention="consumed")
    group = Group.made(lane)
    assert [r.stream for r in rows(database, "SELECT * FROM next_retention")] == [str(lane.name)]
    retain(database)
    lane.append({"0.0": 3})
    assert rows(database, "SELECT * FROM next_retention") == []
    consume(group)
    [row] = rows(database, "SELECT * FROM next_retention")
    assert (row.rule, row.events, row.lost) == ("consumed", 3, {})


def test_looking_locks_and_changes_nothing(database: Database) -> None:
    lane = Lane.made(database, retention="consumed")
    consume(Group.made(lane))
    with database.engine.begin() as connection:
        connection.execute(text("SET TRANSACTION READ ONLY"))
        assert connection.execute(text("SELECT count(*) FROM next_retention")).scalar_one() == 1
        assert connection.execute(text(LOCKS)).all() == []
        # It looks past a run that is at work, too.
        with database.engine.begin() as at_work:
            at_work.execute(text("SELECT FROM stream FOR UPDATE"))
            connection.execute(text("SET LOCAL lock_timeout = '1s'"))
            assert connection.execute(text("SELECT count(*) FROM next_retention")).scalar_one() == 1
    assert len(database.transaction(lambda c: due_streams(c, None))) == 1


def test_many_streams_are_asked_by_one_statement(database: Database) -> None:
    lanes = [Lane.made(database, retention="consumed") for _ in range(30)]
    sent: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *s: sent.append(s[2]))
    assert len(rows(database, "SELECT * FROM next_retention")) == len(lanes)
    assert len(sent) == 1
