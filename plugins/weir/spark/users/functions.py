"""Functions of users that only this process can import."""

import sys
from collections.abc import Iterable
from typing import Any

from pyspark import cloudpickle


def send_by_value(functions: Iterable[Any]) -> None:
    """Let Spark send the code of these functions' modules to its executors, which can't import
    them."""
    for one in functions:
        if (module := sys.modules.get(one.__module__)) is not None:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
