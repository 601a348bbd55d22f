"""Patterns of dates and times that Spark refuses only when it computes an expression."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkException

from weir.errors import InvalidInput
from weir.spark.failures.unreadable import causes_of, condition_of

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
            if not condition_of(java).startswith(_REFUSED):
                continue
            pattern = str(java.getMessageParameters().get("pattern") or "").strip("'")
            for what, text in expressions.items():
                if f"'{pattern}'" in text or f'"{pattern}"' in text:
                    raise InvalidInput(
                        "expression_not_computable",
                        f"the {what} {text!r} has {pattern!r}, which is no pattern of dates and "
                        "times that Spark takes; correct it (such as 'yyyy-MM-dd HH:mm:ss').",
                    ) from None
        raise
