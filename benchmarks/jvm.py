"""How the JVMs of the figures start, and the options that a figure's line says of its own."""

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from unittest.mock import patch

from pyspark.sql import SparkSession

from weir.local.airflow_environment import weir_environment
from weir.local.state_folder import StateFolder
from weir.spark.base.session import session

_LOCAL = "--master local[2] --conf spark.ui.showConsoleProgress=false pyspark-shell"


def as_a_job(state: Path) -> dict[str, str]:
    """Return the environment in which the jobs of `make up` start, with this state folder."""
    return {**os.environ, **weir_environment(StateFolder(state))}


def job_session(state: Path) -> SparkSession:
    """Return the session that a job of `make up` makes, in a JVM with its options."""
    with patch.dict(os.environ, {**as_a_job(state), "PYSPARK_SUBMIT_ARGS": _LOCAL}):
        return session("weir benchmarks")


def plain_session() -> SparkSession:
    """Return a session with Spark's own defaults, in a JVM with them, too."""
    ours = {"SPARK_SUBMIT_OPTS", "SPARK_DRIVER_MEMORY"}
    plain = {name: value for name, value in os.environ.items() if name not in ours}
    plain |= {"PYSPARK_SUBMIT_ARGS": _LOCAL, "SPARK_LOCAL_IP": "127.0.0.1"}
    with patch.dict(os.environ, plain, clear=True):
        return SparkSession.builder.appName("plain").getOrCreate()


def options_of(spark: SparkSession) -> str:
    """Return the options with which the JVM of a session runs, as the JVM says them."""
    beans = spark._jvm.java.lang.management.ManagementFactory  # type: ignore[union-attr]
    return _said(beans.getRuntimeMXBean().getInputArguments())


def options_in(environ: Mapping[str, str]) -> str:
    """Return the options with which spark-submit starts a JVM in an environment."""
    memory = f"-Xmx{environ.get('SPARK_DRIVER_MEMORY', '1g')}"
    return _said([*shlex.split(environ.get("SPARK_SUBMIT_OPTS", "")), memory])


def _said(options: Iterable[str]) -> str:
    return " ".join(one for one in options if one.startswith("-X") and not one.startswith("-Xlog"))
