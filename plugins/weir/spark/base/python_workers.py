"""The Python processes of Spark's executors: where they look for modules, and that they have Weir's
own code, as it is here."""

import atexit
import hashlib
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

# What a server says of Weir's code that its workers find.
SAME_CODE = "spark.weir.code"
_PACKAGE = Path(weir.__file__).resolve().parent
_have: WeakSet[object] = WeakSet()  # contexts and sessions of Connect whose workers got the code
_lock = threading.Lock()


def search(spark: SparkSession, folders: Sequence[str]) -> None:
    """Let the workers of functions that are called from now on search folders for modules, beside
    what they search anyway. What a function calls for each row is imported there, by its name. Over
    Spark Connect they get what is there now."""
    if is_connect(spark):
        for folder in filter(os.path.isdir, dict.fromkeys(folders)):
            spark.addArtifacts(_archive(Path(folder)), pyfile=True)
        return
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
    on a cluster as a file that is sent there once. The server that comes with Weir says that its
    workers have the same code."""
    if is_connect(spark):
        if spark.conf.get(SAME_CODE, "") != fingerprint():
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
            send(_archive(_PACKAGE, "weir/"))
            _have.add(to)


@lru_cache(maxsize=1)
def fingerprint() -> str:
    """Return what tells Weir's code of this process from another, as far as its files do."""
    return _fingerprint(_modules(_PACKAGE))


def _fingerprint(files: Iterable[Path]) -> str:
    found = hashlib.sha256()
    for one in files:
        known = one.stat()
        found.update(f"{one} {known.st_size} {known.st_mtime_ns}\n".encode())
    return found.hexdigest()


@lru_cache(maxsize=16)
def _archive(folder: Path, within: str = "") -> str:
    """Return a file with the code of a folder, which is there as long as this process is."""
    place = tempfile.TemporaryDirectory(prefix="weir-code-")
    atexit.register(place.cleanup)
    files = list(_modules(folder))
    # A name for each content: a server may keep what others have sent.
    path = f"{place.name}/code_{_fingerprint([folder, *files])[:16]}.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as code:
        for above in sorted({above for one in files for above in one.relative_to(folder).parents}):
            code.mkdir(f"{within}{above}/")  # or Python finds no package that has no __init__.py
        for one in files:
            code.write(one, f"{within}{one.relative_to(folder)}")
    return path


def _modules(folder: Path) -> Iterator[Path]:
    """Yield the files of Python's modules below a folder, without hidden folders, and without
    environments of Python."""
    for here, folders, files in os.walk(folder):
        folders[:] = sorted(
            one for one in folders
            if one.isidentifier() and not Path(here, one, "pyvenv.cfg").exists()
        )  # fmt: skip
        yield from (Path(here, one) for one in sorted(files) if one.endswith(".py"))
