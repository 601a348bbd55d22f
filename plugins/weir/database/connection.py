"""Connections to Postgres. Only this module opens one.

Each change of state is one call of `Database.transaction`, with a function that does all its work
on the connection that it gets, or of `Database.statement`, with one statement that does it all.
Both run again after a lost connection, even if it was lost during COMMIT. So what they do must be
idempotent by identity: a request id, a transaction's attempt, a batch's token.
"""

import contextlib
import copy
import functools
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any, TypeVar

import psycopg2
import sqlalchemy
from psycopg2.extras import NamedTupleCursor
from sqlalchemy import Connection, QueuePool, TextClause, event, exc
from sqlalchemy.dialects import postgresql

from weir.database import connection_string, refusals, session
from weir.database.arrays import as_sent
from weir.database.background import KeepAlive
from weir.database.lifetime import Lifetime
from weir.database.progress import Progress, sessions
from weir.errors import (
    Busy,
    Conflict,
    DatabaseFailed,
    InvalidInput,
    InvariantViolation,
    NotFound,
    Truncated,
    Unavailable,
    WeirError,
)
from weir.queries.database import refusals as asks
from weir.settings import Settings

T = TypeVar("T")
log = logging.getLogger("weir.database")

# What Weir's own SQL functions raise: a sentence for the person who reads it, its code as DETAIL.
RAISED_BY_SQL: dict[str | None, type[WeirError]] = {
    "WEIR1": NotFound, "WEIR2": InvalidInput, "WEIR4": Truncated, "WEIR5": Conflict,
}  # fmt: skip
# How long a run waits for a lock after it has waited for one in vain, with other objects to serve.
_HURRIED = sqlalchemy.text("SET LOCAL lock_timeout = '1s'")
_SNAPSHOT = sqlalchemy.text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
# A commit that waits for the disk waits for everything that was committed before it.
_FLUSH = "SELECT pg_logical_emit_message(true, 'weir', '')"
# Restores the setting of the session, which a function of Weir may have changed in a transaction.
WAIT_FOR_DISK = "SET LOCAL synchronous_commit TO DEFAULT"


class Database:
    """Connections to one Postgres, made when first used. Threads may share them; a forked process
    needs its own, and is refused these."""

    def __init__(
        self,
        dsn: str,
        *,
        patience: float,
        connect_patience: float,
        pool_size: int = 4,
        pooler: bool = False,
    ) -> None:
        """`pool_size`: connections kept open, of each of two kinds; `pooler`: see the setting."""
        connection_string.check(dsn, "the database's connection string")
        self._dsn = dsn
        pool_size = max(pool_size, 1)  # to SQLAlchemy 0 means no limit
        self._pooler = pooler
        self._patience = patience
        self._connect_patience = connect_patience
        self._connected = False
        self._hurried = False
        self._shared: Connection | None = None  # whose transaction all operations are part of
        self._lifetime = Lifetime()
        self.engine = sqlalchemy.create_engine(
            "postgresql+psycopg2://", creator=self._connect, pool_size=pool_size, pool_use_lifo=True
        )
        event.listen(
            self.engine, "before_cursor_execute", lambda *s: (s[2], as_sent(s[3])), retval=True
        )
        event.listen(self.engine, "reset", session.close if pooler else session.forget)
        # For statements that stand alone, with cursors of the driver (docs/decisions/0009).
        self._alone = QueuePool(
            self._connect_alone, pool_size=pool_size, use_lifo=True, reset_on_return=None
        )
        self.cursor_alone: type[psycopg2.extensions.cursor] = NamedTupleCursor

    @classmethod
    def of(cls, settings: Settings) -> "Database":
        """Return the installation's database, as its settings name it."""
        service_file = settings.state / "pg_service.conf"
        if "PGSERVICEFILE" not in os.environ and service_file.is_file():
            os.environ["PGSERVICEFILE"] = str(service_file)
            os.environ.setdefault("PGPASSFILE", str(settings.state / "pgpass"))
        return cls(
            settings.database,
            patience=settings.outage_patience,
            connect_patience=settings.connect_patience,
            pool_size=settings.pool_size,
            pooler=settings.pooler,
        )

    def _connect(self) -> psycopg2.extensions.connection:
        connection = session.connect(
            self._dsn,
            **({} if self._pooler else {"options": session.OPTIONS}),
            connect_timeout=10,
            keepalives_idle=30,
            keepalives_interval=10,
            keepalives_count=3,
            tcp_user_timeout=60_000,
            application_name="weir",
        )
        if self._pooler:
            session.check(connection)
        self._connected = True
        return connection

    def _connect_alone(self) -> psycopg2.extensions.connection:
        connection = self._connect()
        connection.autocommit = True
        return connection

    def transaction(self, work: Callable[[Connection], T]) -> T:
        """Run `work` in one transaction and commit it; run it again if the connection is lost.

        Returns what `work` returns. After a rollback, raises Unavailable if Postgres stays away
        longer than the patience; Busy if another session keeps a lock for that long; NotFound,
        InvalidInput, Truncated or Conflict if a SQL function of Weir refuses (SQLSTATE WEIR...);
        DatabaseFailed for what the server lacks, or the login; and whatever else `work` raises.
        """
        if self._shared is not None:
            return work(self._shared)

        def once() -> T:
            with self.engine.begin() as connection:
                if self._hurried:
                    connection.execute(_HURRIED)
                return work(connection)

        return self._until_there(once)

    def together(self, work: Callable[["Database"], T]) -> T:
        """Run `work` like `transaction`. The transactions of the database that it gets are part of
        this one, so all of them happen, or none does. What can't be one of them is refused."""

        def sharing(connection: Connection) -> T:
            shared = copy.copy(self)
            shared._shared = connection
            return work(shared)

        return self.transaction(sharing)

    def snapshot(self, work: Callable[[Connection], T]) -> T:
        """Run `work` like `transaction`, read-only; all its statements see the same moment."""
        self._check_alone("a snapshot")

        def seeing(connection: Connection) -> T:
            connection.execute(_SNAPSHOT)
            return work(connection)

        return self.transaction(seeing)

    def statement(self, statement: TextClause, given: Mapping[str, object]) -> Any:
        """Run one statement as a transaction of its own and return its one row.

        Runs again and raises like `transaction`. Postgres releases the statement's locks without
        waiting for this process, which is most of the time that others wait for a busy stream. If
        the row says that it is not `durable` yet, Postgres also releases them without waiting for
        the disk, and this method waits for the disk before it returns (docs/decisions/0009).
        """
        self._check_alone("a statement that is a transaction of its own")
        sent, values = _compiled(statement), as_sent(given)

        def once() -> Any:
            with self._cursor_alone(sent) as cursor:
                cursor.execute(sent, values)
                (row,) = cursor.fetchall()
                if not row.durable:
                    cursor.execute(_FLUSH)
                return row

        return self._until_there(once)

    def _check_alone(self, what: str) -> None:
        """Refuse what would run beside a `together`, and stay if that is undone."""
        if self._shared is not None:
            raise InvariantViolation(
                "transaction_shared",
                f"{what} was asked for in the middle of changes that happen together, and can't be "
                "one of them, so nothing was changed; this is a defect of Weir, please report it.",
            )

    @contextlib.contextmanager
    def _cursor_alone(self, statement: str) -> Iterator[psycopg2.extensions.cursor]:
        """Give a cursor for a statement that is a transaction of its own. Raises DBAPIError, as
        SQLAlchemy does, and never uses the connection of an error again.
        """
        try:
            connection: Any = self._alone.connect()
        except psycopg2.Error as error:
            raise refusals.as_sqlalchemy_says(statement, error, lost=False) from None
        try:
            with connection.cursor(cursor_factory=self.cursor_alone) as cursor:
                yield cursor
        except BaseException as error:
            lost = bool(connection.closed)
            connection.invalidate(error)
            if isinstance(error, psycopg2.Error):
                raise refusals.as_sqlalchemy_says(statement, error, lost) from None
            raise
        connection.close()

    def _until_there(self, once: Callable[[], T]) -> T:
        """Call `once`, again after a lost connection or lock, until the patience is used up."""
        self._lifetime.check(self.describe)
        begun = time.monotonic()
        waiting_since: float | None = None
        pause = 0.1
        while True:
            try:
                result = once()
                if waiting_since is not None:
                    log.warning("Postgres is back after %.0f s", time.monotonic() - waiting_since)
                return result
            except exc.DBAPIError as error:
                state = refusals.sqlstate(error)
                if state in RAISED_BY_SQL and (code := refusals.detail(error)):
                    raise RAISED_BY_SQL[state](code, refusals.message(error)) from None
                if state in refusals.SOON:
                    log.info("retrying after SQLSTATE %s", state)
                elif not refusals.is_outage(error):
                    if meant := self._meant(error):
                        raise meant from error
                    raise
                now = time.monotonic()
                waiting_since = waiting_since or now
                patience = self._patience if self._connected else self._connect_patience
                over = now - waiting_since > patience or (
                    self._hurried and state == refusals.LOCKED
                )
                reason = connection_string.masked(refusals.message(error), self._dsn)
                if state in refusals.SOON and over:
                    raise Busy(
                        "lock_held",
                        f"another session has held a lock for {now - begun:.0f} s "
                        f"({reason}){self._oldest()}; end that session if it is stuck, or try "
                        "again.",
                    ) from None
                advice, again = refusals.login_advice(reason)
                if over and not state and (found := self._ask(asks.LIMIT)) and found.most:
                    raise refusals.too_short(self.describe(), reason, found.most) from None
                if over or not again:
                    raise Unavailable(
                        "database_unavailable",
                        f"the database ({self.describe()}) can't be reached ({reason}); {advice}.",
                    ) from None
                log.warning("waiting for Postgres (%.0f s): %s", now - waiting_since, reason)
                if state not in refusals.SOON:
                    self.dispose()  # a session on a server that became a standby stays read-only
                time.sleep(pause)
                pause = min(pause * 2, 5.0)

    def for_one_run(self) -> "Database":
        """Return the same connections for one of several runs in a process: that it waited in vain
        for a lock (`one_of_many`) does not hurry the others."""
        run = copy.copy(self)
        run._hurried = False
        return run

    def one_of_many(self, what: str, work: Callable[[], T]) -> tuple[T | None, str]:
        """Do the work for one of many objects, so that the caller can continue with the others.

        Returns the result and "", or None and the sentence with which it failed. An object that was
        deleted meanwhile (NotFound) gives None and "". Raises Unavailable if Postgres is away.

        After a lock that could not be had, this database waits only a second for each further lock.
        So many locked objects cost a run the patience once, and the others are still served.
        """
        try:
            return work(), ""
        except NotFound:
            return None, ""
        except Busy as error:
            self._hurried = True
            sentence = str(error)
        except Unavailable:
            raise
        except (WeirError, exc.DBAPIError) as error:
            sentence = str(error.orig if isinstance(error, exc.DBAPIError) else error)
        return None, sentence.strip() if what in sentence else f"{what}: {sentence.strip()}"

    def _meant(self, error: exc.DBAPIError) -> DatabaseFailed | None:
        """Return what an error means that lies with the server or the login; None for others. Only
        after a refusal the database is asked whether it is Weir's."""
        state, where = refusals.sqlstate(error), self.describe()
        reason = connection_string.masked(refusals.message(error), self._dsn)
        if state not in refusals.LOOKED_UP:
            return refusals.failed(error, reason, where)
        found, layout = None, ""
        with contextlib.suppress(exc.DBAPIError), self._cursor_alone("") as cursor:
            cursor.execute(asks.STANDING.text)
            found = asks.Standing(*cursor.fetchone())
            if found.usable:
                cursor.execute(asks.LAYOUT.text)
                layout = cursor.fetchone()[0]
        if found is None:
            return None
        from weir.database.migrate import newest_layout  # which loads Alembic

        return refusals.without_weir(state, reason, where, found, (layout, newest_layout()))

    def _ask(self, statement: TextClause) -> Any:
        """Return the first row of a statement; None if it has none, or nobody answers."""
        with contextlib.suppress(exc.DBAPIError), self._cursor_alone(statement.text) as cursor:
            cursor.execute(statement.text)
            return cursor.fetchone()
        return None

    def _oldest(self) -> str:
        """Return whose transaction is the oldest, for a sentence; empty if nobody has one. A
        session that waits for a lock has mostly written nothing yet."""
        one = self._ask(asks.OLDEST)
        return f"; the oldest transaction is of session {one.pid} ({one.usename})" if one else ""

    def describe(self) -> str:
        """Return the connection string without its secrets."""
        return connection_string.describe(self._dsn)

    def __enter__(self) -> "Database":
        return self

    def __exit__(self, *_: object) -> None:
        self.dispose()

    def dispose(self) -> None:
        """Close the connections that are idle. The next use makes new ones. The end of a `with`
        block does it, too."""
        if self._lifetime.is_of_another_process:
            return  # to say goodbye on a connection of the other process would end it there
        self.engine.dispose()
        self._alone.dispose()
        self._alone = self._alone.recreate()

    def close(self) -> None:
        """Close the connections for good: whoever uses them later is refused."""
        self._lifetime.end()
        self.dispose()

    def keep_alive(
        self,
        renew: Callable[[Connection], object],
        every: float,
        progress: Progress | None = None,
        overdue: Callable[[Connection], object] = lambda connection: None,
    ) -> KeepAlive:
        """Return a context that runs `renew` in a transaction of its own every so many seconds, as
        long as there is progress, and else `overdue`."""
        self._check_alone("a lease that is renewed")
        return KeepAlive(
            self.transaction, lambda: sessions(self.engine), renew, every, progress, overdue
        )


def wait_for_disk(connection: Connection) -> None:
    """Make the COMMIT of this transaction wait for the disk, even if a function called in it found
    its result not `durable` (see `Database.statement`).
    """
    connection.execute(sqlalchemy.text(WAIT_FOR_DISK))


def copy_in(connection: Connection, statement: str, rows: IO[bytes]) -> str:
    """Send a file, from its beginning, to a `COPY ... FROM STDIN` in the connection's transaction,
    which can run again. Return the transaction's number."""
    rows.seek(0)
    cursor = connection.connection.cursor()
    try:
        cursor.copy_expert(statement, rows)
        cursor.execute("SELECT pg_current_xact_id()::text")
        ((number,),) = cursor.fetchall()
        return str(number)
    except psycopg2.Error as error:
        lost = bool(connection.connection.closed)
        raise refusals.as_sqlalchemy_says(statement, error, lost) from None
    finally:
        cursor.close()


@functools.cache
def _compiled(statement: TextClause) -> str:
    """Return the statement as the driver gets it."""
    return str(statement.compile(dialect=postgresql.dialect()))  # type: ignore[no-untyped-call]
