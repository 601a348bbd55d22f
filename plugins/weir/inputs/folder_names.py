"""The columns that the names of folders hold, without Spark: `dt=2026-01-01/`."""

import re
from collections.abc import Sequence
from urllib.parse import unquote

from weir.errors import InvalidInput
from weir.model.names import check_user_columns, shortened

_NAMED = re.compile(r"([^\W\d]\w*)=(.*)", re.DOTALL)
_NULL = "__HIVE_DEFAULT_PARTITION__"

Partitions = dict[str, list[str | None]]  # by column: the value of each file


def is_partition(folder: str) -> bool:
    """Return whether the name of a folder holds a column."""
    return _NAMED.fullmatch(folder) is not None


def partitions_of(paths: Sequence[str]) -> Partitions:
    """Return the columns that the folders of files hold, with the value of each file; values are
    percent-decoded, and Hive's word for null is null.

    Raises InvalidInput if the files are in folders of different columns, and for a name that is
    reserved or is there twice.
    """
    rows = [_values(path) for path in paths]
    names = list(rows[0]) if rows else []
    for path, row in zip(paths, rows, strict=True):
        if list(row) != names:
            raise InvalidInput(
                "file_invalid",
                f"the folders of {shortened(path)} hold the columns {', '.join(row) or 'none'}, "
                f"but those of {shortened(paths[0])} hold {', '.join(names) or 'none'}; append "
                "them in separate runs.",
            )
    check_user_columns(names)
    return {name: [row[name] for row in rows] for name in names}


def _values(path: str) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        if (match := _NAMED.fullmatch(folder)) is None:
            continue
        name, value = match.groups()
        if name.lower() in {one.lower() for one in found}:
            raise InvalidInput(
                "file_invalid",
                f"the folders of {shortened(path)} hold column {name!r} twice; rename one of them.",
            )
        found[name] = None if value == _NULL else unquote(value)
    return found
