"""The settings of every session, so that statements and values mean the same whatever a login, a
database, a server, a service or the environment is set to."""

import os

import psycopg2
from sqlalchemy import Connection
from sqlalchemy.pool import ConnectionPoolEntry

from weir.errors import InvalidInput

# What changes the meaning of a statement, or of a value that is sent or returned: how texts and
# arrays are written, which names are found, what equals null, which rows are seen. The migration
# sets them, too. The encoding is sent by itself (`connect`).
MEANING = {
    "search_path": "weir_internal, weir",
    "timezone": "UTC",
    "datestyle": "ISO, MDY",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "off",
    "default_transaction_deferrable": "off",
    "standard_conforming_strings": "on",
    "transform_null_equals": "off",
    "array_nulls": "on",
    "quote_all_identifiers": "off",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "row_security": "on",
    "gin_fuzzy_search_limit": "0",
}
# What no statement of Weir depends on, but triggers and functions of output tables may. Logins
# differ in it, and what a batch means must not depend on which of them commits it.
_OF_TRIGGERS = {
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "xmlbinary": "base64",
    "xmloption": "content",
}
# Times are UTC everywhere. A session waits for a lock at most a minute, so that a stuck session
# causes a retry and a log line, not silence. The server frees the locks of a client a minute after
# the client froze, or its machine or network failed. By itself, the server would detect that only
# after two hours.
SESSION = MEANING | {"lock_timeout": "1min", "idle_in_transaction_session_timeout": "1min"}
_NETWORK = {
    "tcp_user_timeout": "60s",
    "tcp_keepalives_idle": "30s",
    "tcp_keepalives_interval": "10s",
    "tcp_keepalives_count": "3",
}
# What libpq sends at the start of a session.
OPTIONS = " ".join(
    "-c {}={}".format(name, value.replace(" ", "\\ "))
    for name, value in (SESSION | _OF_TRIGGERS | _NETWORK).items()
)
# What libpq takes from the environment and sends after them, so that it would win.
_OF_ENVIRONMENT = {"timezone": "PGTZ", "datestyle": "PGDATESTYLE"}
_PIN = "; ".join(f"SET {name} TO '{MEANING[name]}'" for name in _OF_ENVIRONMENT)


def connect(dsn: str, **more: object) -> object:
    """Open a connection whose texts are UTF-8, COPY included, and whose times are read and written
    in one way. `more`: further parts of the connection string."""
    connection = psycopg2.connect(dsn, client_encoding="UTF8", **more)
    if "options" in more and any(
        connection.get_parameter_status(shown) != MEANING[shown.lower()]
        for shown in ("TimeZone", "DateStyle")
    ):
        connection.autocommit = True  # so that no rollback takes it back
        with connection.cursor() as cursor:
            cursor.execute(_PIN)
        connection.autocommit = False
    return connection


# What brings a session back to its beginning, as DISCARD ALL does, but for the plans of statements,
# which Postgres makes anew by itself where a name means something else.
_FORGET = f"""CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; {_PIN};
    DEALLOCATE ALL; UNLISTEN *; SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP;
    DISCARD SEQUENCES"""
_LENT = "weir_lent"


def lend(connection: Connection) -> None:
    """Note that code of other people runs in a transaction: triggers, functions. When it is over,
    the session forgets whatever they have left in it (`forget`)."""
    connection.info[_LENT] = True


def forget(
    connection: psycopg2.extensions.connection, record: ConnectionPoolEntry, _: object
) -> None:
    """Bring the session of a connection that was lent back to its beginning, before others use it.
    One that does not come back is closed. For the pool, when it gets a connection back."""
    if not record.info.pop(_LENT, False):
        return
    try:
        connection.rollback()
        connection.autocommit = True  # so that the statements are sent at once
        with connection.cursor() as cursor:
            cursor.execute(_FORGET)
        connection.autocommit = False
    except psycopg2.Error:
        connection.close()


def close(
    connection: psycopg2.extensions.connection, record: ConnectionPoolEntry, _: object
) -> None:
    """Close a connection that was lent. A pooler would give what it is told to another session."""
    if record.info.pop(_LENT, False):
        connection.close()


def check(connection: psycopg2.extensions.connection) -> None:
    """Check that the pooler's login has the settings of a session. Raises InvalidInput."""
    cursor = connection.cursor()
    cursor.execute("SELECT current_user, " + ", ".join(f"current_setting('{n}')" for n in SESSION))
    login, *found = cursor.fetchone()
    connection.rollback()
    for (name, wanted), is_ in zip(SESSION.items(), found, strict=True):
        if is_ != wanted:
            connection.close()
            given = wanted if name == "search_path" else f"'{wanted}'"  # in quotes it is one schema
            remedy = f"run ALTER ROLE {login} SET {name} = {given}, and let the pooler reconnect"
            variable = _OF_ENVIRONMENT.get(name, "")
            if variable in os.environ:
                remedy = f"unset the environment variable {variable}"
            raise InvalidInput(
                "setting_invalid",
                f"with the setting pooler, the login {login} must have {name} = {wanted!r}, but "
                f"it has {is_!r}; {remedy}.",
            )
