"""Find the programs of PostgreSQL that can dump and restore a database.

`pg_dump` refuses a server that is newer than itself, and what is first on PATH may be of any
version. So all that are known are asked for their version: those of the wheel, those in the folders
of packages, and those on PATH.
"""

import errno
import glob
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from weir.database import connection_string
from weir.errors import InvalidInput, WeirError
from weir.local import binaries
from weir.warehouse.filesystem import disk_full

_FOLDERS = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
            "/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin")  # fmt: skip
_VERSION = re.compile(r"pg_dump \(PostgreSQL\) ([0-9]+)")
_SERVICE = "weir-secrets"
_PROGRAMS = ("pg_dump", "pg_restore")


class Programs(NamedTuple):
    """A folder with both programs, and their version."""

    version: int
    folder: Path

    def run(self, program: str, dsn: str, *arguments: str) -> None:
        """Run a program on a database; of one that needs none `dsn` is empty. Raises WeirError with
        what it says if it fails."""
        environ, database, secrets = dict(os.environ), list[str](), dict[str, str]()
        environ.pop("PGOPTIONS", None)  # which could hide rows
        environ |= {"PGCLIENTENCODING": "UTF8", "LC_ALL": "C"}
        if dsn:
            parts = connection_string.check(dsn, "the owner's connection string")
            # Every user sees a process's arguments, and libpq has a variable for one secret only.
            secrets = {one: parts.pop(one) for one in connection_string.SECRET if one in parts}
            if "password" in secrets:
                environ["PGPASSWORD"] = secrets.pop("password")
            if secrets and "service" in parts:
                raise InvalidInput(
                    "setting_invalid",
                    f"the owner's connection string has a service and {' and '.join(secrets)}; "
                    "write that into the service file, too.",
                )
            database = ["-d", _written(parts | ({"service": _SERVICE} if secrets else {})), "-w"]
        with tempfile.TemporaryFile("w+") as service:  # without a name, so a kill leaves none
            if secrets:
                service.write("\n".join([f"[{_SERVICE}]", *map("=".join, secrets.items()), ""]))
                service.flush()
                environ["PGSERVICEFILE"] = f"/dev/fd/{service.fileno()}"
            done = subprocess.run(
                [str(self.folder / program), *database, *arguments], env=environ,
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
                pass_fds=[service.fileno()],
            )  # fmt: skip
        if done.returncode != 0:
            said = connection_string.masked(done.stderr.strip()[-1000:], dsn)
            if os.strerror(errno.ENOSPC) in said:
                raise disk_full(os.strerror(errno.ENOSPC), f"on which {program} writes")
            raise WeirError("setup_failed", f"{program} failed: {said or done.returncode}.")


def programs_for(version: int) -> Programs:
    """Return the oldest programs that are at least as new as this version: what a newer one writes
    may be new, too. Raises WeirError if there are none."""
    found = list(_found())
    able = [one for one in found if one.version >= version]
    if able:
        return min(able, key=lambda one: one.version)  # the first of them, so the wheel's
    known = ", ".join(f"{one.version} in {one.folder}" for one in found) or "none"
    raise WeirError(
        "setup_failed",
        f"there is no pg_dump of PostgreSQL {version} or later (found: {known}); install the "
        f"client programs of PostgreSQL {version}.",
    )


def _found() -> Iterator[Programs]:
    try:
        folders = [path / "bin" for path in sorted(binaries.wheel().parent.glob("pginstall*"))]
    except WeirError:
        folders = []
    folders += [Path(one) for pattern in _FOLDERS for one in sorted(glob.glob(pattern))]
    folders += [Path(one) for one in os.get_exec_path() if os.path.isabs(one)]
    for folder in dict.fromkeys(folders):
        if all(os.access(folder / one, os.X_OK) for one in _PROGRAMS) and (
            version := _version(folder / "pg_dump")
        ):
            yield Programs(version, folder)


def _version(program: Path) -> int | None:
    try:
        done = subprocess.run(
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=30,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    said = _VERSION.match(done.stdout)
    return int(said[1]) if said and done.returncode == 0 else None


def _written(parts: Mapping[str, str]) -> str:
    """Return a connection string of its parts."""
    escaped = {ord(sign): f"\\{sign}" for sign in "\\'"}
    return " ".join(f"{name}='{value.translate(escaped)}'" for name, value in parts.items())
