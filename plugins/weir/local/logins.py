"""The databases and logins of a local installation, and the files that let libpq use them.

`weir_owner` owns and migrates the database `weir`, `weir_app` is what jobs use, `weir_view` may
read views; `airflow` has a database of its own and can't enter the other.
"""

import base64
import hashlib
import hmac
import secrets

from weir.local.embedded_postgres import EmbeddedPostgres

# service name: (database, login). The services `weir` and `weir_reader` are the settings' default.
SERVICES = {
    "weir": ("weir", "weir_app"),
    "weir_reader": ("weir", "weir_view"),
    "weir_owner": ("weir", "weir_owner"),
    "airflow": ("airflow", "airflow"),
}


def make_owners(postgres: EmbeddedPostgres) -> None:
    """The databases and their owners, and the files; before the migration. May be repeated."""
    postgres.psql(
        _login(postgres, "weir_owner", "CREATEROLE")
        + _login(postgres, "airflow")
        + _database("weir", "weir_owner")
        + _database("airflow", "airflow")
        + "REVOKE ALL ON DATABASE weir, airflow, postgres FROM PUBLIC;\n"
    )
    write_files(postgres)


def make_users(postgres: EmbeddedPostgres) -> None:
    """The logins in the group roles that the migration makes; after it. May be repeated."""
    postgres.psql(
        _login(postgres, "weir_app")
        + _login(postgres, "weir_view")
        + "GRANT CONNECT, TEMPORARY ON DATABASE weir TO weir_jobs;\n"
        + "GRANT CONNECT ON DATABASE weir TO weir_reader;\n"
        + "GRANT weir_jobs TO weir_app;\nGRANT weir_reader TO weir_view;\n"
    )


def write_files(postgres: EmbeddedPostgres) -> None:
    """pg_service.conf and pgpass: whoever has them needs neither a port nor a password."""
    state = postgres.state
    services = "".join(
        f"[{service}]\nhost=127.0.0.1\nport={postgres.port}\ndbname={database}\nuser={user}\n"
        f"passfile={state.path / 'pgpass'}\n\n"
        for service, (database, user) in SERVICES.items()
    )
    passwords = "".join(
        ":".join(map(_escaped, ("127.0.0.1", "*", database, user, state.secret(user)))) + "\n"
        for database, user in SERVICES.values()
    )
    state.write_text("pgpass", passwords)
    state.write_text("pg_service.conf", services)


def _login(postgres: EmbeddedPostgres, name: str, rights: str = "") -> str:
    verifier = scram_verifier(postgres.state.secret(name))
    return (
        f"SELECT 'CREATE ROLE {name}' WHERE NOT EXISTS"
        f" (SELECT FROM pg_roles WHERE rolname = '{name}') \\gexec\n"
        f"ALTER ROLE {name} LOGIN {rights} PASSWORD '{verifier}';\n"
    )


def _database(name: str, owner: str) -> str:
    return (
        f"SELECT 'CREATE DATABASE {name} OWNER {owner}' WHERE NOT EXISTS"
        f" (SELECT FROM pg_database WHERE datname = '{name}') \\gexec\n"
    )


def scram_verifier(password: str) -> str:
    """What Postgres stores for a password (RFC 5803): so the password itself is in no statement,
    which the server could log. Passwords must be ASCII, as ours are."""
    salt, rounds = secrets.token_bytes(16), 4096
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, rounds)
    stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    shown = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${rounds}:{shown[0]}${shown[1]}:{shown[2]}"


def _escaped(field: str) -> str:
    return field if field == "*" else field.replace("\\", "\\\\").replace(":", "\\:")
