"""Errors of Weir in Python workers of Spark, such as those of the format `weir`."""

import functools
import os
from collections.abc import Callable
from typing import Any, TypeVar

from weir.errors import WeirError

_Called = TypeVar("_Called", bound=Callable[..., Any])


def says_why(called: _Called) -> _Called:
    """Wrap a function so that Spark shows an error of Weir without the traceback of its Python
    worker.

    Only for functions that Spark calls in a worker that ends with the error, so no later traceback
    is hidden.
    """

    @functools.wraps(called)
    def saying(*given: object, **named: object) -> object:
        try:
            return called(*given, **named)
        except WeirError:
            os.environ["SPARK_HIDE_TRACEBACK"] = (
                "1"  # PySpark reads this variable when it sends an error
            )
            raise

    return saying  # type: ignore[return-value]  # of the same signature
