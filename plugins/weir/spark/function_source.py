"""Which version of which function made a result, for lineage."""

import functools
import hashlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from weir.reader_groups.batches import Function

DIGITS = 16


def source_of(function: Callable[..., Any]) -> Function:
    """Return the name of a function, and the version of its source: the first digits of the SHA-256
    of the file that defines it. The version is empty if there is no such file."""
    own: Any = function
    while isinstance(own, functools.partial):
        own = own.func
    own = inspect.unwrap(own)
    if not hasattr(own, "__qualname__"):  # an object that can be called
        own = type(own)
    name = f"{own.__module__}:{own.__qualname__}"
    try:
        file = inspect.getsourcefile(own)
        source = Path(file).read_bytes() if file else b""
    except (OSError, TypeError):
        source = b""
    return Function(name, hashlib.sha256(source).hexdigest()[:DIGITS] if source else "")
