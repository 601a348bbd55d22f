"""The databases and logins of a local installation, and the files with which libpq uses them.

`weir_owner` owns and migrates the database `weir`, jobs use `weir_app`, `weir_view` may read views,
and `weir_watch` is what Airflow's triggerer needs. `airflow` has a database of its own and may not
connect to `weir`.
"""

import base64
import hashlib
import hmac
import secrets

from weir.local.embedded_postgres import EmbeddedPostgres

# service name: (database, login). The default of the settings is the service `weir`.
SERVICES = {
    "weir": ("weir", "weir_app"),
    "weir_reader": ("weir", "weir_view"),
    "weir_watcher": ("weir", "weir_watch"),
    "weir_owner": ("weir", "weir_owner"),
    "airflow": ("airflow", "airflow"),
}
# Postgres lets every login store large objects, which belong to no table and no schema, and hold
# the advisory lock of any number, also that of the migration.
FOR_NOBODY_BUT_JOBS = """
DO $$ DECLARE found regprocedure; BEGIN
    FOR found IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
                 AND proname ~ '^(lo_.*|loread|lowrite)$' LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', found);
    END LOOP;
    FOR found IN SELECT oid FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace
                 AND proname ~ '^pg_(try_)?advisory_' LOOP
        EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', found);
        EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO weir_owner, weir_jobs, weir_team, '
                       'weir_publisher', found);
    END LOOP;
    -- And it tells everybody the frequent values of the tables that they may read. All tables of
    -- consumers may be read by weir_publisher, and so by the triggers of each of them.
    REVOKE SELECT ON pg_stats, pg_stats_ext, pg_stats_ext_exprs FROM PUBLIC;
    GRANT SELECT ON pg_stats, pg_stats_ext, pg_stats_ext_exprs TO weir_owner, weir_jobs, weir_team;
END $$;
"""


def make_owners(postgres: EmbeddedPostgres) -> None:
    """Create the databases, their owners, and the files. Call it before the migration. May be
    repeated."""
    _make_login(postgres, "weir_owner")
    _make_login(postgres, "airflow")
    _make_database(postgres, "weir", owner="weir_owner")
    _make_database(postgres, "airflow", owner="airflow")
    postgres.psql(
        "ALTER ROLE weir_owner CREATEROLE;"  # the migration creates the group roles
        "REVOKE ALL ON DATABASE weir, airflow, postgres, template1 FROM PUBLIC;"
    )
    write_files(postgres)


def make_users(postgres: EmbeddedPostgres) -> None:
    """Add the logins to the group roles that the migration creates. Call it afterwards. May be
    repeated."""
    _make_login(postgres, "weir_app")
    _make_login(postgres, "weir_view")
    _make_login(postgres, "weir_watch")
    postgres.psql(
        "GRANT CONNECT, TEMPORARY ON DATABASE weir TO weir_jobs, weir_team;"
        "GRANT CONNECT ON DATABASE weir TO weir_reader, weir_watcher;"
        "GRANT weir_jobs TO weir_app;"
        "GRANT weir_reader TO weir_view;"
        "GRANT weir_watcher TO weir_watch;"
        # Whoever looks must not take the connections of those who work, nor hold rows for ever.
        + "".join(
            f"ALTER ROLE {login} CONNECTION LIMIT 20;"
            f"ALTER ROLE {login} SET statement_timeout = '10min';"
            f"ALTER ROLE {login} SET idle_in_transaction_session_timeout = '10min';"
            for login in ("weir_view", "weir_watch")
        )
    )
    postgres.psql(FOR_NOBODY_BUT_JOBS, database="weir")


def write_files(postgres: EmbeddedPostgres) -> None:
    """Write pg_service.conf and pgpass. With these files nobody needs a port or a password."""
    state = postgres.state
    services = "".join(
        f"[{service}]\nhost=127.0.0.1\nport={postgres.port}\ndbname={database}\nuser={user}\n"
        f"passfile={state.path / 'pgpass'}\n"
        "sslmode=disable\ngssencmode=disable\nconnect_timeout=10\n\n"
        for service, (database, user) in SERVICES.items()
    )
    passwords = "".join(
        ":".join(map(_escaped, ("127.0.0.1", "*", "*", user, state.secret(user)))) + "\n"
        for _, user in SERVICES.values()
    )
    state.write_text("pgpass", passwords)
    state.write_text("pg_service.conf", services)


def _make_login(postgres: EmbeddedPostgres, name: str) -> None:
    postgres.psql(
        """
        SELECT format('CREATE ROLE %I', :'name')
        WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = :'name') \\gexec
        ALTER ROLE :"name" LOGIN PASSWORD :'verifier';
        """,
        name=name,
        verifier=scram_verifier(postgres.state.secret(name), postgres.rounds),
    )


def _make_database(postgres: EmbeddedPostgres, name: str, owner: str) -> None:
    postgres.psql(
        """
        SELECT format('CREATE DATABASE %I OWNER %I', :'name', :'owner')
        WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = :'name') \\gexec
        """,
        name=name,
        owner=owner,
    )


def scram_verifier(password: str, rounds: int = 4096) -> str:
    """Return what Postgres stores for a password (RFC 5803), so that the password itself is in no
    statement, which the server could log. Passwords must be ASCII, as ours are."""
    salt = secrets.token_bytes(16)
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    shown = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${rounds}:{shown[0]}${shown[1]}:{shown[2]}"


def _escaped(field: str) -> str:
    return field if field == "*" else field.replace("\\", "\\\\").replace(":", "\\:")
