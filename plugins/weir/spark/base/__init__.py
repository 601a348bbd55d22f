"""What all work with Spark stands on: sessions, exact names and values, order, routing."""

import sys
from collections.abc import Sequence
from importlib.machinery import PathFinder
from os.path import dirname, realpath


def _files_first(path: Sequence[str]) -> list[str]:
    """Return where to look for modules: PySpark in its files before the archive of them, which each
    process compiles anew. Files beside another archive may be of another version than the JVM."""
    archives = [one for one in path if one.endswith("/pyspark.zip")]
    others = [one for one in path if one not in archives]
    found = PathFinder.find_spec("pyspark", others)
    own = found and found.origin and realpath(f"{dirname(found.origin)}/python/lib/pyspark.zip")
    return [*others, *archives] if all(realpath(one) == own for one in archives) else list(path)


sys.path[:] = _files_first(sys.path)  # Spark names the archive first
