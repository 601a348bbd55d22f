"""A password is in no error, log or table, however a connection string is mistyped."""

import os
import subprocess
import sys
from pathlib import Path

import psycopg2
import pytest

from tests.conftest import TestDatabase
from tests.raises import raises
from weir.database import connection_string, migrate
from weir.database.connection import Database
from weir.errors import InvalidInput, Unavailable, WeirError
from weir.operations.jobs import ACTIONS

REPOSITORY = Path(__file__).parents[2]
MISTYPED = [
    "postgresql://weir_app:s3cret%zz@127.0.0.1:1/weir",
    "postgresql://weir_app:pass/s3cret@127.0.0.1:1/weir",
    "postgresql://weir_app:12/s3cret@127.0.0.1:1/weir",
    "postgresql://weir_app:pass@s3cret@127.0.0.1:1/weir",
    "postgresql://weir_app:s3cret@[127.0.0.1:1/weir",
    "postgresql://weir_app@127.0.0.1:1/weir?pass=word&s3cret",
    "postgres//weir_app:s3cret@127.0.0.1:1/weir",
    "postgresql+psycopg2://weir_app:s3cret@127.0.0.1:1/weir",
    "host=127.0.0.1 port=1 dbname=weir password=my s3cret",
    "host=127.0.0.1 port=1 dbname=weir password='s3cret",
    "host=127.0.0.1 port=s3cret",
    "s3cret",
]


@pytest.mark.parametrize("dsn", MISTYPED)
def test_a_mistyped_connection_string_is_refused_and_not_quoted(dsn: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        Database(dsn, patience=0.0, connect_patience=0.0)
    assert "s3cret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.__cause__ is None
    with raises("setting_invalid WEIR_DATABASE_OWNER"):
        migrate.upgrade(dsn)
    assert connection_string.describe(dsn) == ""


@pytest.mark.parametrize(
    "dsn",
    [
        "service=weir",
        "",
        "postgresql:///weir",
        "postgresql://weir_app:p%40ss%2Fword@a,b:1,2/weir?connect_timeout=3",
        "host=a,b port=1,2 dbname=weir password='a@b/c d' user=x@y",
    ],
)
def test_what_libpq_reads_as_it_was_meant_is_accepted(dsn: str) -> None:
    connection_string.check(dsn, "this")


def test_a_password_that_a_library_would_print_is_masked(test_database: TestDatabase) -> None:
    dsn = test_database.dsn + " password=s3cret"
    said = connection_string.masked("refused: s3cret, and more", dsn)
    assert said == "refused: ***, and more"
    assert connection_string.masked(f"no {MISTYPED[0]} here", MISTYPED[0]) == "no *** here"


@pytest.mark.parametrize("dsn", [MISTYPED[0], MISTYPED[7]])
def test_neither_the_migration_nor_a_job_prints_it(dsn: str, tmp_path: Path) -> None:
    environ = os.environ | {
        "PYTHONPATH": str(REPOSITORY / "plugins"),
        "WEIR_DATABASE": dsn,
        "WEIR_DATABASE_OWNER": dsn,
        "WEIR_STATE": str(tmp_path),
    }
    for command in (["-m", "weir.database.migrate"], [ACTIONS["stream_cuts"].file]):
        done = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environ, capture_output=True, text=True
        )
        assert done.returncode != 0
        assert "s3cret" not in done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr


def test_an_unreachable_server_is_described_without_it() -> None:
    dsn = "postgresql://weir_app:s3cret@127.0.0.1:1/weir"
    with pytest.raises(WeirError) as caught:
        migrate.upgrade(dsn)
    assert isinstance(caught.value, Unavailable)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(psycopg2.OperationalError):
        psycopg2.connect(dsn)
