"""A Postgres for tests: fast, not safe against crashes, and always removed afterwards."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weir.local import logins
from weir.local.embedded_postgres import EmbeddedPostgres

# It reads until its input is closed. The kernel closes it, however this process ends.
_REAPER = """
cat >/dev/null
if pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null); then
    kill -QUIT "$pid"
    while kill -0 "$pid" 2>/dev/null && [ -e "$1/data/postmaster.pid" ]; do sleep 0.05; done
fi
rm -rf "$1" "$2"
"""


@contextmanager
def throw_away_postgres(memory: Path | None = None) -> Iterator[EmbeddedPostgres]:
    """Yield a server with the empty databases `weir` and `airflow` and their owners, for one
    `with`. `memory`: a folder in which it keeps its data, instead of on disk."""
    folder = Path(tempfile.mkdtemp(prefix="weir-"))
    postgres = EmbeddedPostgres(folder, durable=False, memory=memory)
    with reaped(postgres, folder):
        try:
            postgres.start()
            logins.make_owners(postgres)
            yield postgres
        finally:
            postgres.remove()


@contextmanager
def reaped(postgres: EmbeddedPostgres, folder: Path) -> Iterator[None]:
    """Stop a server, and delete its data and a folder, after the `with`, however this process
    ends."""
    reaper = subprocess.Popen(
        ["/bin/sh", "-c", _REAPER, "sh", str(postgres.home), str(folder)],
        stdin=subprocess.PIPE,
        env={"PATH": os.defpath},  # no variable by which it would be found and stopped with us
        start_new_session=True,  # Ctrl-C must not reach the reaper; the end of its input stops it
        cwd="/",
    )
    try:
        yield
    finally:
        reaper.communicate()
