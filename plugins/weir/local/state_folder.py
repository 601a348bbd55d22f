"""The folder that holds everything of one local installation: what is remembered, and its locks.

Whatever is made in it is for its owner alone: logs quote rows of data, and sentences do, too.
"""

import fcntl
import hashlib
import json
import logging
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

log = logging.getLogger("weir.local")


class StateFolder:
    """A folder, and small files in it, each replaced as a whole; readable by its owner only."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        # The same for every installation at this path: what an installation leaves behind when
        # somebody deletes its folder can still be told to be its.
        self.identity = hashlib.sha256(str(self.path).encode()).hexdigest()[:12]

    def folder(self, name: str = "") -> Path:
        """Make the folder `name` below this one, for its owner alone, and return it.

        One that exists keeps its mode: somebody may have opened it to others.
        """
        path = self.path
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for part in Path(name).parts:
            path /= part
            path.mkdir(mode=0o700, exist_ok=True)
        return path

    def read(self, name: str) -> dict[str, Any]:
        """What `write` stored under the name, or nothing."""
        try:
            values: dict[str, Any] = json.loads((self.path / name).read_text())
        except FileNotFoundError:
            return {}
        return values

    def write(self, name: str, values: dict[str, Any]) -> None:
        """Replace the values stored under the name."""
        self.write_text(name, json.dumps(values, indent=2) + "\n")

    def write_text(self, name: str, text: str) -> None:
        """Replace the file: a reader sees the old text or the new, and nobody else reads it."""
        path = self.folder(str(Path(name).parent)) / Path(name).name
        new = path.with_name(f"{path.name}.{os.getpid()}")
        new.unlink(missing_ok=True)
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)

    def secret(self, name: str, size: int = 24) -> str:
        """A random secret, made when it is first asked for."""
        with self.lock("secrets"):
            known = self.read("secrets.json")
            if name not in known:
                self.write("secrets.json", known | {name: secrets.token_urlsafe(size)})
            return str(self.read("secrets.json")[name])

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """One process at a time; the lock of a process that was killed is free."""
        with (self.folder() / f"{name}.lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                log.info("waiting for another process that holds %s", file.name)
                fcntl.flock(file, fcntl.LOCK_EX)
            yield
