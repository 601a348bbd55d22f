"""Text files that are compressed, told by their first bytes: names may be wrong."""

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from weir.warehouse.filesystem import filesystem

# What a compressed file begins with. A digit in the beginning of bz2 says how it was made.
_BEGIN = {
    "gzip": (b"\x1f\x8b\x08",),
    "zstd": (b"\x28\xb5\x2f\xfd",),
    "bz2": tuple(b"BZh%d1AY&SY" % level for level in range(1, 10)),
    "lz4": (b"\x04\x22\x4d\x18",),
}
_LONGEST = 10


def compression_of(source: pa.NativeFile) -> str:
    """Return how a file is compressed, empty if it is not. It is read from its beginning after."""
    start = source.read(_LONGEST)
    source.seek(0)
    return next((name for name, begin in _BEGIN.items() if start.startswith(begin)), "")


def compression_at(root: str, path: str) -> str:
    """Return how a file of a root is compressed, empty if it is not."""
    system, base = filesystem(root)
    with system.open_input_file(f"{base}/{path}") as source:
        return compression_of(source)


@contextmanager
def plain_text(source: pa.NativeFile) -> Iterator[pa.NativeFile]:
    """Give a file's bytes as they were before it was compressed."""
    if name := compression_of(source):
        with pa.CompressedInputStream(source, name) as plain:
            yield plain
    else:
        yield source
