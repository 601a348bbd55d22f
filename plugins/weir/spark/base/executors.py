"""Look with one small job at what the executors of a cluster have: a Python that appends can use,
and a way to the warehouse."""

import platform
import socket
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import SparkSession

from weir.errors import InvalidInput
from weir.spark.base.calls import called_in_tasks
from weir.spark.base.session import cores
from weir.warehouse.filesystem import filesystem
from weir.warehouse.marker import MARKER

NEEDED = ("pyarrow", "numpy", "xxhash")  # beside Weir's code, which comes with the job
_TASKS = 64  # at most: enough to meet most executors
_CONTENT = b"weir doctor\n"


@dataclass(frozen=True)
class Seen:
    """What a task has seen. `problem`: why it can't write the warehouse. `shares`: whether it finds
    there what the driver has written; None if only a JVM reaches the warehouse, or nobody looked.
    """

    host: str
    python: str
    version: str
    pyarrow: str
    problem: str = ""
    shares: bool | None = None


def seen_by_tasks(spark: SparkSession, warehouse: str, name: str) -> list[Seen]:
    """Return what tasks on the executors see, by the way that appends go. `name`: of the file of
    `probe`. Raises what Spark raises, and InvalidInput if a package is missing there."""
    count = min(_TASKS, cores(spark))
    answers = called_in_tasks(spark, _look, [[(warehouse, name)]] * count)
    return sorted(set(answers), key=lambda seen: seen.host)


def lacking(spark: SparkSession) -> list[str]:
    """Return the packages that the Python of an executor does not have. What asks for them needs
    none of them, and nothing of Weir."""
    names = NEEDED

    def find(_: int) -> list[str]:
        from importlib.util import find_spec

        return [name for name in names if find_spec(name) is None]

    found: list[str] = spark.sparkContext.parallelize([0], 1).flatMap(find).collect()
    return found


def _look(given: tuple[str, str]) -> Seen:
    import weir.kernel.writer  # noqa: F401  # what an append imports

    (warehouse, name), problem, shares = given, "", None
    try:
        with suppress(InvalidInput):  # only a JVM reaches it: tasks hand their files to the driver
            system, base = filesystem(warehouse)
            if name:
                shares = system.get_file_info(f"{base}/{name}").is_file
                _write_and_delete(system, f"{base}/{_new_name()}")
    except OSError as error:
        problem = (str(error).splitlines() or [type(error).__name__])[0]
    return Seen(
        socket.gethostname(), sys.executable, platform.python_version(), pa.__version__, problem,
        shares,
    )  # fmt: skip


def _write_and_delete(system: fs.FileSystem, path: str) -> None:
    with system.open_output_stream(path) as out:
        out.write(_CONTENT)
    system.delete_file(path)


def _new_name() -> str:
    """Return the name of a new file beside the marker. It is called as the leftovers of killed
    writers of the marker are, which a sweep deletes, and which nobody takes for data."""
    return f"{MARKER}.{uuid.uuid4().hex}"


@contextmanager
def probe(warehouse: str) -> Iterator[str]:
    """Write a file into the warehouse while a block runs, and yield its name; an empty one if that
    can't be done here, or if there is no warehouse yet."""
    name = ""
    with suppress(OSError, InvalidInput):  # the line about the warehouse says it
        system, base = filesystem(warehouse)
        if system.get_file_info(base).type != fs.FileType.NotFound:
            new = _new_name()
            with system.open_output_stream(f"{base}/{new}") as out:
                out.write(_CONTENT)
            name = new
    try:
        yield name
    finally:
        if name:
            with suppress(OSError):
                system.delete_file(f"{base}/{name}")
