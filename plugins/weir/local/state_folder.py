"""The folder with all data of one local installation: stored values and locks.

Only its owner may read what is made in it, because logs and error sentences quote data.
"""

import fcntl
import hashlib
import json
import logging
import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

log = logging.getLogger("weir.local")


class StateFolder:
    """A folder with small files, each replaced as a whole. Only its owner may read them."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        # Equal for all installations at this path, so that the next one finds what an installation
        # left elsewhere when somebody deleted its folder.
        self.identity = hashlib.sha256(str(self.path).encode()).hexdigest()[:12]

    def folder(self, name: str = "") -> Path:
        """Make the folder `name` below this one, for its owner alone, and return it.

        A folder that exists keeps its mode, because somebody may have opened it to others on
        purpose.
        """
        path = self.path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in Path(name).parts:
            path /= part
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def read(self, name: str) -> dict[str, Any]:
        """Return the values that `write` stored under the name; empty if there are none."""
        try:
            values: dict[str, Any] = json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return {}
        return values

    def write(self, name: str, values: Mapping[str, object]) -> None:
        """Replace the values stored under the name."""
        self.write_text(name, json.dumps(values, indent=2) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Replace the file atomically, readable by its owner only. A reader sees the old text or
        the new one."""
        path = self.folder(str(Path(name).parent)) / Path(name).name
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def log_file(self, name: str) -> Path:
        """Return the file to which a process prints."""
        return self.path / "logs" / f"{name}.log"

    def open_log(self, name: str) -> IO[bytes]:
        """Open the file to which a process prints, at its end."""
        self.folder("logs")
        return open(self.log_file(name), "ab", opener=_private)

    def last_words(self, name: str) -> str:
        """Return the last lines that a process has printed, with the name of its file."""
        path = self.log_file(name)
        lines = path.read_text(errors="replace").splitlines()[-30:]
        return "\n".join([f"The end of {path}:", *lines])

    def secret(self, name: str, size: int = 24) -> str:
        """Return a random secret. It is made when it is first asked for."""
        with self.lock("secrets"):
            known = self.read("secrets.json")
            if name not in known:
                self.write("secrets.json", known | {name: secrets.token_urlsafe(size)})
            return str(self.read("secrets.json")[name])

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Let one process at a time into the block. A process that is killed releases the lock."""
        with (self.folder() / f"{name}.lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("waiting for another process that holds %s", file.name)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, mode=0o600)
