"""Expressions that are just a column, which can be understood without Spark's parser."""

import re

_COLUMN = re.compile(r"`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*)")
# Words that Spark does not read as a column, or of which the meaning depends on the time or the
# user. Its parser decides about them (tests/spark/test_expressions.py compares).
_WORDS = frozenset(
    """current_catalog current_database current_date current_path current_schema current_time
    current_timestamp current_user false localtime localtimestamp null session_user true""".split()
)


def plain_column(expression: str) -> str | None:
    """Return the column that an expression is, if it is no more."""
    match = _COLUMN.fullmatch(expression.strip())
    column = match and (match[1] or match[2])
    return None if column is None or column.lower() in _WORDS else column
