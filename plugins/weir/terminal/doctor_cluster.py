"""What `weir doctor` says about the executors of a cluster."""

import json
import os
import re
import shlex
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.errors import WeirError
from weir.operations.examination import Check, wrong
from weir.settings import Settings

if TYPE_CHECKING:
    from weir.spark.base.executors import Seen

WAIT = 120  # seconds in which executors have to answer
_WHAT = "executors"
_SHIP = ("ship a Python by spark.archives and spark.pyspark.python (docs/recipes.md, Python on a "
         "cluster)")  # fmt: skip
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_MASTER = re.compile(r"\s*spark\.master[\s=:]+(\S+)\s*")
_VERSIONS = re.compile(r"different version: (\S+) than that in driver: (\S+?),")


def named_master(environ: Mapping[str, str]) -> str:
    """Return the master that jobs are started with: what PYSPARK_SUBMIT_ARGS names, then the file
    of Spark's settings, then Airflow's connection in the environment; else `local`."""
    words = shlex.split(environ.get("PYSPARK_SUBMIT_ARGS", ""))
    options = list(pairwise(words))
    for option, value in options:
        if option == "--master":
            return value
    for option, value in options:
        if option in ("--conf", "-c") and value.startswith("spark.master="):
            return value.partition("=")[2]
    folder = environ.get("SPARK_CONF_DIR") or f"{environ.get('SPARK_HOME', '')}/conf"
    try:
        lines = (Path(folder) / "spark-defaults.conf").read_text().splitlines()
    except OSError:
        lines = []
    for line in lines:
        if set_there := _MASTER.fullmatch(line):
            return set_there[1]
    return _of_airflow(environ.get("AIRFLOW_CONN_SPARK_DEFAULT", "")) or "local"


def _of_airflow(connection: str) -> str:
    try:
        known = json.loads(connection)
        port = known.get("port")
        return str(known["host"]) + (f":{port}" if port else "")
    except (ValueError, KeyError, AttributeError):  # written as a URI, or none
        return ""


def use_named_master() -> str:
    """Let the session of this process have the master that jobs are started with; return it."""
    master = named_master(os.environ)
    given = os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    if not master.startswith("local") and "--master" not in given:
        os.environ["PYSPARK_SUBMIT_ARGS"] = f"--master {shlex.quote(master)} {given}"
    return master


def check_cluster(settings: Settings, master: str) -> Iterator[Check]:
    """Check with one small job what the executors have, unless Spark runs in this process."""
    if master.startswith("local"):
        return
    try:
        from weir.spark.base.executors import probe
        from weir.spark.base.session import start_jvm

        start_jvm()
    except (ImportError, WeirError):
        return  # the lines about Java and Spark say it
    found: list[Check] = []
    # What waits for a cluster can't be stopped; it ends with this process.
    with probe(settings.warehouse) as name:  # which is deleted though nobody answers
        looking = threading.Thread(
            target=lambda: found.extend(_look(settings, master, name)), daemon=True
        )
        looking.start()
        looking.join(WAIT)
    yield from list(found) or [
        Check(_WHAT, False, f"none of {master} answers within {WAIT} s",
              "look at its page: it needs a worker with free cores and memory, and its executors "
              "must reach this machine (spark.driver.host)")
    ]  # fmt: skip


def _look(settings: Settings, master: str, name: str) -> list[Check]:
    from weir.spark.base.executors import lacking, seen_by_tasks
    from weir.spark.base.session import session
    from weir.spark.failures.causes import sentence

    spark: Any = None
    try:
        spark = session("weir doctor")
        python = _named_python(spark)
        try:
            seen = seen_by_tasks(spark, settings.warehouse, name)
            return said(master, python, settings.warehouse, seen)
        except WeirError as error:
            if error.code != "executors_lack_package":
                return [wrong(_WHAT, error)]
            return [lacks(python, lacking(spark))]
        except Exception as error:
            return [failed(python, str(error), sentence(error))]
    except WeirError as error:
        return [wrong(_WHAT, error)]
    except Exception as error:  # whatever kept the session from beginning
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return [Check(_WHAT, False, f"{master} takes no job: {line}", "check its address")]
    finally:
        if spark is not None:
            spark.stop()


def _named_python(spark: Any) -> str:
    """Return the Python of the executors, and who names it."""
    context = spark.sparkContext
    conf = context.getConf()
    if conf.get("spark.pyspark.python") == context.pythonExec:
        archives = conf.get("spark.archives")
        by = "spark.pyspark.python" + (f", with {archives}" if archives else "")
    else:
        by = "PYSPARK_PYTHON" if "PYSPARK_PYTHON" in os.environ else "by default"
    return f"{context.pythonExec} ({by})"


def lacks(python: str, packages: Sequence[str]) -> Check:
    """Say which packages executors need and do not have."""
    return Check(_WHAT, False, f"their Python {python} lacks {', '.join(packages)}",
                 f"install them there, or {_SHIP}")  # fmt: skip


def failed(python: str, text: str, line: str) -> Check:
    """Say why a job failed. `text`: all that Spark says; `line`: the cause, in one line."""
    if _NO_PROGRAM.search(text):
        return Check(_WHAT, False, f"they have no Python {python}",
                     f"name one that is there, or {_SHIP}")  # fmt: skip
    if "PYTHON_VERSION_MISMATCH" in text:
        ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
        found = _VERSIONS.search(text)
        theirs = f"Python {found[1]}" if found else "another version"
        return Check(_WHAT, False, f"their Python {python} is {theirs}, this program's is {ours}",
                     f"use the same version on both sides, or {_SHIP}")  # fmt: skip
    return Check(_WHAT, False, f"a small job fails there: {line}",
                 "the logs of the executors say more")  # fmt: skip


def said(master: str, python: str, warehouse: str, seen: Sequence["Seen"]) -> list[Check]:
    """Say what tasks have seen, a line for each kind of trouble."""
    checks = []
    if unable := [one for one in seen if one.problem]:
        checks.append(
            Check(_WHAT, False, f"they can't write {warehouse} ({_hosts(unable)}: "
                  f"{unable[0].problem})", "let their user write there, and give them the login of "
                  "its storage (spark.executorEnv.*)")
        )  # fmt: skip
    if apart := [one for one in seen if not one.problem and one.shares is False]:
        checks.append(
            Check(_WHAT, False, f"{warehouse} is another folder there ({_hosts(apart)})",
                  "mount the same one on all machines, or use a warehouse in an object store")
        )  # fmt: skip
    versions = ", ".join(sorted({f"{one.version}, pyarrow {one.pyarrow}" for one in seen}))
    way = "" if any(one.shares is not None for one in seen) else " (the warehouse was not tried)"
    return checks or [
        Check(_WHAT, True, f"{master} on {_hosts(seen)}: Python {versions}, {python}{way}")
    ]


def _hosts(seen: Sequence["Seen"]) -> str:
    names = sorted({one.host for one in seen})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
