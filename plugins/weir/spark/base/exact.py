"""What Spark takes literally: names of columns, paths of files, and values as JSON."""

import re
from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

# Spark takes these characters of a file name for a pattern that matches other files, too.
# (Its option against that, __globPaths__, reads all files several times.)
_PATTERN = re.compile(r"[\\*?{}\[\]]")

# JSON must keep microseconds and null fields, in any time zone of the session.
EXACT = {
    "timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX",
    "timestampNTZFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSS",
    "timeZone": "UTC",
    "ignoreNullFields": "false",
}


def as_json(column: Column) -> Column:
    """Return a struct, array or map as JSON text."""
    return F.to_json(column, EXACT)


def quoted(names: Sequence[str]) -> list[Column]:
    """Return columns by their exact names, whatever characters the names have."""
    return [F.col("`" + name.replace("`", "``") + "`") for name in names]


def exact(path: str) -> str:
    """Return a path for reading that means exactly one file, whatever characters it has."""
    return _PATTERN.sub(r"\\\g<0>", path)
