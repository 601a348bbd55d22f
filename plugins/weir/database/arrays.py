"""How lists are sent to Postgres: each as one literal, `{1,2}`.

The driver would write ARRAY[1,2], an expression of that many constants. Planning one of a thousand
takes longer than running most statements.
"""

from collections.abc import Sequence


def as_sent(given: object) -> object:
    """Return a statement's parameters with each list or tuple as a literal; the others as they
    are."""
    if isinstance(given, dict) and any(isinstance(one, (list, tuple)) for one in given.values()):
        return {k: _literal(v) if isinstance(v, (list, tuple)) else v for k, v in given.items()}
    return given


def _literal(values: Sequence[object]) -> str:
    if {*map(type, values)} == {int}:  # most lists, and the long ones
        return "{" + repr([*values])[1:-1] + "}"
    return "{" + ",".join(map(_element, values)) + "}"


def _element(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return "NULL" if value is None else str(value)
