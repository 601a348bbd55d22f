"""A disk of its own with hardly any space, as root mounts it, and what fills and frees it."""

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest


@contextlib.contextmanager
def mounted(folder: Path, size: str = "256k") -> Iterator[Path]:
    """Mount a disk of that size at a new folder while the block runs."""
    folder.mkdir()
    mount: list[str | Path] = ["mount", "-t", "tmpfs", "-o", f"size={size}", "weir", folder]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("only root can mount a disk")
    try:
        yield folder
    finally:
        # Hadoop may still hold a file open whose writing failed.
        subprocess.run(["umount", "--lazy", folder], check=True)


def resize(disk: Path, size: str) -> None:
    """Give a mounted disk another size."""
    subprocess.run(["mount", "-o", f"remount,size={size}", disk], check=True)


def fill(disk: Path) -> None:
    """Leave no space on a disk."""
    with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as file:
        while file.write(b"x" * 512):
            pass
