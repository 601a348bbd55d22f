"""The Python processes of Spark's executors: where they look for modules, and that they have Weir's
own code, as it is here."""

import atexit
import os
import sys
import tempfile
import threading
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from weakref import WeakSet

from pyspark import SparkContext, cloudpickle
from pyspark.sql import SparkSession

import weir
from weir.spark.base.session import follow_named_python, is_connect

_PACKAGE = Path(weir.__file__).resolve().parent
_have: WeakSet[object] = WeakSet()  # contexts and sessions of Connect whose workers got the code
_lock = threading.Lock()


def search(spark: SparkSession, folders: Sequence[str]) -> None:
    """Let the workers of functions that are called from now on search folders for modules, beside
    what they search anyway. What a function calls for each row is imported there, by its name."""
    environment = spark.sparkContext.environment
    known = environment.get("PYTHONPATH", "").split(os.pathsep)
    environment["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([*folders, *filter(None, known)]))


def send_by_value(functions: Iterable[object]) -> None:
    """Let Spark send the code of these functions' modules to its executors, which can't import
    them."""
    for one in functions:
        if (module := sys.modules.get(one.__module__)) is not None:
            cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]


@contextmanager
def with_own_code(spark: SparkSession) -> Iterator[None]:
    """Run a block that makes a function of Weir for the workers of a session, so that they find
    Weir: on this machine where it is, with the Python of this process if the session names none;
    on a cluster as a file that is sent there once."""
    if is_connect(spark):
        _send(spark, lambda path: spark.addArtifacts(path, pyfile=True))
        yield
        return
    context = spark.sparkContext
    if not str(context.master).startswith("local"):
        follow_named_python(context)
        _send(context, context.addPyFile)
        yield
        return
    with _lock:  # what is set is the session's: nobody else may see it
        python, environment = context.pythonExec, dict(context.environment)
        if _names_python(context):
            follow_named_python(context)
        else:
            context.pythonExec = sys.executable
        search(spark, [str(_PACKAGE.parent)])
        try:
            yield
        finally:
            context.pythonExec = python
            context.environment.clear()
            context.environment.update(environment)


def _names_python(context: SparkContext) -> bool:
    settings = ("spark.pyspark.python", "spark.pyspark.driver.python")
    return "PYSPARK_PYTHON" in os.environ or any(
        context.getConf().get(name) is not None for name in settings
    )


def _send(to: object, send: Callable[[str], None]) -> None:
    with _lock:
        if to not in _have:
            send(_archive())
            _have.add(to)


@lru_cache(maxsize=1)
def _archive() -> str:
    """Return a file with Weir's code, which is there as long as this process is."""
    folder = tempfile.TemporaryDirectory(prefix="weir-code-")
    atexit.register(folder.cleanup)
    path = f"{folder.name}/weir.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as code:
        for one in sorted(_PACKAGE.rglob("*.py")):
            code.write(one, f"weir/{one.relative_to(_PACKAGE)}")
    return path
