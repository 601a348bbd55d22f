"""Where what comes with the library lies: in the source tree, or in the package that was installed.

`pyproject.toml` puts folders of the source tree into the wheel, each below `weir`.
"""

from pathlib import Path

LIBRARY = Path(__file__).parent
_TREE = LIBRARY.parents[1]
REPOSITORY = _TREE if (_TREE / "sql").is_dir() else None  # the source tree, if we are in one


def beside(name: str) -> Path:
    """Return a folder that comes with the library: `sql`, `dags`, `spark_jobs` or `examples`."""
    return (REPOSITORY or LIBRARY) / name
