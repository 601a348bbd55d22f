"""Which version of which function made a result, for lineage and for people."""

import functools
import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path

from weir.reader_groups.batches.lifecycle import Function

DIGITS = 16


def source_of(function: Callable[..., object]) -> Function:
    """Return the name of a function, and the version of its source: the first digits of the SHA-256
    of the file that defines it. The version is empty if there is no such file."""
    own = _own(function)
    file = source_file(function)
    try:
        source = Path(file).read_bytes() if file else b""
    except OSError:
        source = b""
    version = hashlib.sha256(source).hexdigest()[:DIGITS] if source else ""
    module = own.__module__ or "__main__"  # what `exec` defines may have none
    module = re.sub(r"^unusual_prefix_[0-9a-f]+_", "", module)  # Airflow's, of a DAG file
    return Function(f"{module}:{own.__qualname__}", version)


def source_file(function: Callable[..., object]) -> str:
    """Return the file that defines a function; empty if there is none."""
    try:
        return inspect.getsourcefile(_own(function)) or ""
    except (OSError, TypeError):
        return ""


def _own(function: Callable[..., object]) -> type | Callable[..., object]:
    """Return what a partial function, a decorated one or an object calls."""
    own = function
    while isinstance(own, functools.partial):
        own = own.func
    own = inspect.unwrap(own)
    return own if hasattr(own, "__qualname__") else type(own)  # an object that can be called
