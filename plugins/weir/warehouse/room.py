"""How much room the disks of folders have left."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict


class Room(TypedDict):
    """How many bytes of the disk of a folder are free, of how many."""

    root: str
    free: int
    size: int


def rooms(*roots: str) -> list[Room]:
    """Return the room of folders of this machine, once for each disk."""
    return list(_rooms(roots))


def _rooms(roots: tuple[str, ...]) -> Iterator[Room]:
    seen = set()
    for root in roots:
        folder = Path(root)
        if "://" in root or not folder.is_dir() or (disk := folder.stat().st_dev) in seen:
            continue
        seen.add(disk)
        found = shutil.disk_usage(folder)
        yield Room(root=root, free=found.free, size=found.total)
