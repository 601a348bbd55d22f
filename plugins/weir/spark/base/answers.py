"""What tasks of Spark answer: values, as bytes. They come over the network, from processes in which
functions of users may have run, so nothing but values is made of them."""

import pickle
from dataclasses import is_dataclass
from io import BytesIO
from typing import Any

# What is no value of Weir's own, and may be in one.
_PLAIN = {("builtins", "set"), ("builtins", "frozenset"), ("datetime", "datetime"),
          ("datetime", "date"), ("datetime", "timedelta"), ("datetime", "timezone"),
          ("decimal", "Decimal")}  # fmt: skip


def told(answer: object) -> bytes:
    """Return an answer as a task sends it."""
    return pickle.dumps(answer)


def heard(said: bytes) -> Any:
    """Return the answer of a task. Raises UnpicklingError for one that is more than values."""
    return _Values(BytesIO(said)).load()


class _Values(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        if (module, name) in _PLAIN:
            return super().find_class(module, name)
        if module.startswith("weir.") and "." not in name:
            found = super().find_class(module, name)
            if isinstance(found, type) and (is_dataclass(found) or issubclass(found, tuple)):
                return found
        raise pickle.UnpicklingError(f"a task answered with {module}.{name}, which is no value")
