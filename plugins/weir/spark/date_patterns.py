"""Patterns of dates and times that Spark refuses only when it computes an expression."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from weir.errors import InvalidInput
from weir.spark.unreadable import causes_of

# A letter that is none, or one that means something else since Spark 3.
_REFUSED = ("INVALID_DATETIME_PATTERN", "INCONSISTENT_BEHAVIOR_CROSS_VERSION.DATETIME_")


@contextmanager
def naming_patterns(expressions: Mapping[str, str]) -> Iterator[None]:
    """Run a block in which Spark computes expressions, by what they are.

    Raises InvalidInput naming the expression that has the pattern which Spark refuses.
    """
    try:
        yield
    except PySparkException as error:
        for java in causes_of(error):
            try:
                condition = str(java.getCondition() or "")
                given = dict(java.getMessageParameters() or {})
            except Py4JError:  # an exception that is not Spark's has no condition
                continue
            if not condition.startswith(_REFUSED):
                continue
            pattern = str(given.get("pattern", "")).strip("'")
            for what, text in expressions.items():
                if f"'{pattern}'" in text or f'"{pattern}"' in text:
                    raise InvalidInput(
                        "expression_not_computable",
                        f"the {what} {text!r} has {pattern!r}, which is no pattern of dates and "
                        "times that Spark takes; correct it (such as 'yyyy-MM-dd HH:mm:ss').",
                    ) from None
        raise
