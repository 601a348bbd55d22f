"""What the containers of docker-compose.yaml do at their start, done here: secrets, logins, schema.

The scripts are those of the file; only the places are others (/run/secrets, the host `postgres`).
"""

import json
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from tests.compose_file import (
    COMPOSE,
    PG_SERVICE,
    REPOSITORY,
    SERVICES,
    environment_of,
    make_secrets,
    write_entry,
)
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.local.throw_away import throw_away_postgres

pytestmark = pytest.mark.release

LOGINS: str = COMPOSE["configs"]["logins"]["content"]


@dataclass
class Deployment:
    """A Postgres after `logins`, and a folder that stands for the containers' file systems."""

    postgres: EmbeddedPostgres
    secrets: Path
    folder: Path

    def container(self, service: str) -> tuple[Path, dict[str, str]]:
        """The entry script and the environment of a service, beside its own secrets only."""
        root = self.folder / service
        entry = write_entry(service, root, self.secrets)
        address = f"host=127.0.0.1\nport={self.postgres.port}"
        services = PG_SERVICE.replace("host=postgres", address)
        (root / "pg_service.conf").write_text(services)
        return entry, environment_of(service, root) | {
            "PYTHONPATH": str(REPOSITORY / "plugins"),
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "AIRFLOW_HOME": str(root / "airflow"),
        }

    def run(self, service: str, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as in a container of the service."""
        entry, environ = self.container(service)
        words = ["/bin/sh", str(entry), *command]
        return subprocess.run(words, cwd=REPOSITORY, env=environ, capture_output=True, text=True)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("compose")
    secrets = make_secrets(folder)
    with throw_away_postgres() as postgres:
        postgres.psql(  # the new volume's server has nothing of this
            "DROP DATABASE weir; DROP DATABASE airflow; DROP ROLE weir_owner; DROP ROLE airflow;"
            " GRANT CONNECT ON DATABASE postgres TO PUBLIC;"
        )
        for _ in range(2):  # at every `up`
            postgres.psql(LOGINS.replace("/run/secrets", str(secrets)))
        yield Deployment(postgres, secrets, folder)


@pytest.fixture(scope="module")
def migrated(deployment: Deployment) -> Deployment:
    for _ in range(2):
        done = deployment.run("migrate", *SERVICES["migrate"]["command"])
        assert done.returncode == 0, done.stdout + done.stderr
    return deployment


def connect(deployment: Deployment, login: str, database: str = "weir") -> Any:
    return psycopg2.connect(
        host="127.0.0.1",
        port=deployment.postgres.port,
        dbname=database,
        user=login,
        password=(deployment.secrets / login).read_text().strip(),
    )


def test_the_example_makes_every_secret_in_a_closed_folder(tmp_path: Path) -> None:
    secrets = make_secrets(tmp_path)
    assert {path.name for path in secrets.iterdir()} == set(COMPOSE["secrets"])
    assert stat.S_IMODE(secrets.stat().st_mode) == 0o700
    values = {path.name: path.read_text().strip() for path in secrets.iterdir()}
    assert len(set(values.values())) == len(values)
    assert all(len(value) >= 44 for value in values.values())
    assert set(json.loads(values["airflow_auth"])) == {"admin", "viewer"}


def test_the_schema_is_migrated_by_an_owner_that_is_no_superuser(migrated: Deployment) -> None:
    with connect(migrated, "weir_owner") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT rolsuper, rolcreaterole FROM pg_roles WHERE rolname = current_user")
        assert cursor.fetchone() == (False, False)
        cursor.execute("SELECT count(*) FROM weir_internal.stream")
        assert cursor.fetchone() == (0,)


def test_a_job_finds_the_database_by_its_name_alone(migrated: Deployment) -> None:
    done = migrated.run(
        "scheduler",
        "python",
        "-c",
        "from sqlalchemy import text; from weir.settings import load; "
        "from weir.database.connection import Database; "
        "print(Database.of(load()).transaction(lambda c: c.execute(text("
        "'SELECT current_user, count(*) FROM stream')).one()))",
    )
    assert "('weir_app', 0)" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("login", "may", "may_not"),
    [
        ("weir_app", "DELETE FROM weir_internal.stream", "DROP TABLE weir_internal.stream"),
        ("weir_view", "SELECT * FROM weir.streams", "SELECT * FROM weir_internal.stream"),
        ("weir_view", "SELECT 1", "SELECT lo_create(0)"),
    ],
)
def test_a_login_does_what_it_is_for_and_no_more(
    migrated: Deployment, login: str, may: str, may_not: str
) -> None:
    with connect(migrated, login) as connection, connection.cursor() as cursor:
        cursor.execute(may)
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            cursor.execute(may_not)


@pytest.mark.parametrize(
    ("login", "database"),
    [
        ("airflow", "weir"),
        ("weir_app", "airflow"),
        ("weir_view", "postgres"),
        ("weir_view", "template1"),
    ],
)
def test_no_login_enters_the_others_database(
    migrated: Deployment, login: str, database: str
) -> None:
    with pytest.raises(psycopg2.OperationalError, match="permission denied for database"):
        connect(migrated, login, database)


def test_airflow_reaches_its_database_and_reads_its_secrets(deployment: Deployment) -> None:
    done = deployment.run(
        "api-server",
        "python",
        "-c",
        "from airflow.configuration import conf; from airflow.utils.db import check; check(); "
        "from cryptography.fernet import Fernet; Fernet(conf.get('core', 'fernet_key')); "
        "print(conf.get('api_auth', 'jwt_secret').strip(), conf.get('api', 'secret_key').strip()); "
        "import json; print(sorted(json.load(open(conf.get("
        "'core', 'simple_auth_manager_passwords_file'), 'r+'))))",
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    secrets = [(deployment.secrets / name).read_text().strip() for name in ("jwt", "api")]
    assert said[-2:] == [" ".join(secrets), "['admin', 'viewer']"]


def test_files_with_passwords_are_for_one_user_and_hold_no_more_than_needed(
    deployment: Deployment,
) -> None:
    root = deployment.container("scheduler")[0].parent
    done = deployment.run("scheduler", "env")
    lines = (root / "pgpass").read_text().splitlines()
    assert [line.split(":")[3] for line in lines] == ["airflow", "weir_app"]
    spark = root / "spark-conf" / "spark-defaults.conf"
    password = (deployment.secrets / "spark").read_text().strip()
    assert f"\nspark.authenticate.secret {password}\n" in spark.read_text()
    assert "\nspark.sql.session.timeZone     UTC\n" in spark.read_text()
    for path in (root / "pgpass", spark):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path in deployment.secrets.iterdir():
        assert path.read_text().strip() not in done.stdout, "a password is in the environment"


@pytest.mark.parametrize("secret", ["weir_app", "spark"])
def test_an_empty_secret_is_named_and_nothing_starts(
    deployment: Deployment, tmp_path: Path, secret: str
) -> None:
    empty = tmp_path / "secrets"
    empty.mkdir()
    for path in deployment.secrets.iterdir():
        (empty / path.name).write_bytes(b"" if path.name == secret else path.read_bytes())
    done = Deployment(deployment.postgres, empty, tmp_path).run("scheduler", "echo", "started")
    assert done.returncode != 0
    assert f"weir: the secret {secret} is empty or can't be read" in done.stderr
    assert "started" not in done.stdout


def test_a_password_with_colons_and_backslashes_works(
    deployment: Deployment, tmp_path: Path
) -> None:
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    for path in deployment.secrets.iterdir():
        (secrets / path.name).write_bytes(path.read_bytes())
    (secrets / "weir_owner").write_text("a:b\\c'd\n")
    deployment.postgres.psql(LOGINS.replace("/run/secrets", str(secrets)))
    try:
        changed = Deployment(deployment.postgres, secrets, tmp_path)
        done = changed.run("migrate", "python", "-m", "weir.database.migrate")
        assert done.returncode == 0, done.stderr
    finally:
        deployment.postgres.psql(LOGINS.replace("/run/secrets", str(deployment.secrets)))
