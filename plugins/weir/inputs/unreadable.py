"""Input files that can't be read: what is wrong with them, and whether another try may help."""

import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from weir.errors import InvalidInput, WeirError
from weir.inputs.compression import plain_text
from weir.warehouse.filesystem import filesystem
from weir.warehouse.second_reader import damage_of_parquet

_PIECE = 16 << 20
_CLASS = re.compile(r"[\w.$]*(Exception|Error): |@[0-9a-f]{6,}")
LONGEST = 300  # characters of another error that a sentence quotes


class UnreadableFile(WeirError):
    """An undamaged file could not be read. Its storage may be available again later."""

    retryable = True


def one_line(message: str) -> str:
    """Return the first line of another program's message, without class names of errors."""
    first = (message.strip().splitlines() or [""])[0]
    printable = "".join(c if c.isprintable() else "?" for c in first)
    return _CLASS.sub("", printable)[:LONGEST].rstrip(". ")


def damage_of(root: str, path: str, format_: str) -> str | None:
    """Return what another reader says is wrong with the file. Return None if it can read the whole
    file, or if the storage is not available now."""
    system, base = filesystem(root)
    try:
        if format_ == "parquet":
            damage = damage_of_parquet(root, path)
            return one_line(damage) if damage and stored(root, path) else None
        with system.open_input_file(f"{base}/{path}") as source, plain_text(source) as plain:
            _exhaust(iter(lambda: plain.read(_PIECE), b""))
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's errors are among these
        # If the storage is not available, nothing is known about the file.
        damage = one_line(str(error)) or type(error).__name__
        return damage if stored(root, path) else None
    return None


@contextmanager
def text_of(root: str, path: str) -> Iterator[pa.NativeFile]:
    """Open a text file, whose bytes are as before it was compressed. Raises InvalidInput for a
    damaged file, OSError if the storage fails."""
    system, base = filesystem(root)
    try:
        with system.open_input_file(f"{base}/{path}") as source, plain_text(source) as plain:
            yield plain
    except OSError:
        if (damage := damage_of(root, path, "csv")) is not None:
            raise damaged(path, damage) from None
        raise


def stored(root: str, path: str) -> bool:
    """Return whether the storage gives all bytes of a file."""
    system, base = filesystem(root)
    try:
        with system.open_input_stream(f"{base}/{path}", compression=None) as source:
            _exhaust(iter(lambda: source.read(_PIECE), b""))
    except OSError:
        return False
    return True


def _exhaust(pieces: Iterator[bytes]) -> None:
    deque(pieces, maxlen=0)


def damaged(path: str, damage: str) -> InvalidInput:
    """Return the error for a damaged file."""
    return InvalidInput(
        "file_invalid",
        f"the input file {path!r} is damaged ({damage}), so nothing was appended; check that it "
        "was copied completely, or write it again.",
    )


def unreadable_now(path: str, error: Exception) -> UnreadableFile:
    """Return the error for a file that its storage does not give."""
    return UnreadableFile(
        "file_unreadable",
        f"the input file {path!r} can't be read now ({one_line(str(error))}), so nothing was "
        "appended; try again when its storage is available.",
    )
