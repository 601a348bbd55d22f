"""The schema of a stream: Spark's JSON form of a struct's fields. It may only gain columns."""

from typing import Any

from weir.errors import Conflict, InvalidInput
from weir.names import check_user_columns

Field = dict[str, Any]


def merge(stream: str, current: list[Field] | None, given: list[Field]) -> list[Field]:
    """The schema after appending rows of schema `given`; `current` itself when nothing is new.

    Columns that are missing are null in the new rows; new ones are added at the end, nullable.
    Raises InvalidInput naming the column whose type differs or that may not be missing.
    """
    check_user_columns([field["name"] for field in given])
    if not given:
        raise InvalidInput(f"the rows for stream {stream} have no column.")
    if current is None:
        return [{**field, "nullable": True} for field in given]
    known = {field["name"]: field for field in current}
    by_lower = {name.lower(): name for name in known}
    added = []
    for field in given:
        name = field["name"]
        if name in known:
            if not same_type(known[name]["type"], field["type"]):
                raise InvalidInput(
                    f"column {name!r} is {show(field['type'])}, but {show(known[name]['type'])} in "
                    f"stream {stream}; cast it before appending (columns may be added, their "
                    "types can't change)."
                )
        elif name.lower() in by_lower:
            raise InvalidInput(
                f"column {name!r} differs from {by_lower[name.lower()]!r} of stream {stream} only "
                "in the case of its letters; rename it."
            )
        else:
            added.append({**field, "nullable": True})
    missing = [
        n for n, f in known.items() if not f["nullable"] and n not in {g["name"] for g in given}
    ]
    if missing:
        raise InvalidInput(f"column {missing[0]!r} of stream {stream} is missing and may not be.")
    if len(added) == len(given):
        raise InvalidInput(
            f"none of the columns {', '.join(f['name'] for f in given[:5])} is in stream {stream} "
            f"(it has {', '.join(list(known)[:5])}); check that this is the right file."
        )
    return [*current, *added] if added else current


def combine(stream: str, current: list[Field] | None, planned: list[Field]) -> list[Field]:
    """Both sets of columns: when two appends added columns at the same time. Raises Conflict."""
    try:
        return merge(stream, current, planned)
    except InvalidInput as error:
        raise Conflict(f"another append changed the schema meanwhile: {error}") from None


def same_type(a: Any, b: Any) -> bool:
    """Equality of two types in Spark's JSON form, whether or not parts may be null."""
    return bool(_strict(a) == _strict(b))


def _strict(kind: Any) -> Any:
    if isinstance(kind, dict):
        skip = {"nullable", "containsNull", "valueContainsNull", "metadata"}
        return {k: _strict(v) for k, v in kind.items() if k not in skip}
    if isinstance(kind, list):
        return [_strict(part) for part in kind]
    return kind


def show(kind: Any) -> str:
    """A type as a person reads it."""
    return kind if isinstance(kind, str) else str(kind.get("type", kind))
