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
    """Return the room of folders of this machine, once for each disk; nothing of a folder that is
    not there, or that this user may not look at."""
    return list(_rooms(roots))


def _rooms(roots: tuple[str, ...]) -> Iterator[Room]:
    seen = set()
    for root in roots:
        if "://" in root:
            continue
        try:
            disk, found = Path(root).stat().st_dev, shutil.disk_usage(root)
        except OSError:  # upkeep has more to do
            continue
        if disk in seen:
            continue
        seen.add(disk)
        yield Room(root=root, free=found.free, size=found.total)
