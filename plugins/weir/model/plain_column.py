"""Values that are just a column."""

from functools import lru_cache

from weir.errors import InvalidInput
from weir.model.transforms import value_of


@lru_cache
def plain_column(text: str) -> str | None:
    """Return the column that a value is, if it is no more; also None for what is no value."""
    try:
        return value_of(text, "value").plain
    except InvalidInput:
        return None
