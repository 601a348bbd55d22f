"""Errors of Weir in Python workers of Spark, such as those of the format `weir`."""

import functools
import os
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from weir.errors import WeirError

P = ParamSpec("P")
T = TypeVar("T")


def says_why(called: Callable[P, T]) -> Callable[P, T]:
    """Wrap a function so that Spark shows an error of Weir without the traceback of its Python
    worker.

    Only for functions that Spark calls in a worker that ends with the error, so no later traceback
    is hidden.
    """

    @functools.wraps(called)
    def saying(*given: P.args, **named: P.kwargs) -> T:
        try:
            return called(*given, **named)
        except WeirError:
            os.environ["SPARK_HIDE_TRACEBACK"] = (
                "1"  # PySpark reads this variable when it sends an error
            )
            raise

    return saying
