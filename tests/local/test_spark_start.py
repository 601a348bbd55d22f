"""How Spark starts on one machine: with Weir's settings, and with classes from an archive."""

import os
import subprocess
from pathlib import Path

import pytest

from weir.local.spark_start import ARCHIVE, class_archive, spark_start

JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20
print(spark.conf.get("spark.sql.session.timeZone"), spark.conf.get("spark.ui.enabled"), heap > 1500)
"""


@pytest.mark.parametrize("there", [True, False])
def test_a_job_starts_with_the_settings_and_with_the_archive_if_there_is_one(
    tmp_path: Path, there: bool
) -> None:
    (tmp_path / "job.py").write_text(JOB)
    environ = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    environ["SPARK_SUBMIT_OPTS"] = f"-Xlog:class+load:file='{tmp_path}/loaded classes'"
    archive = class_archive(ARCHIVE if there else tmp_path / "not there.jsa")
    done = subprocess.run(
        ["spark-submit", "--master", "local[1]", tmp_path / "job.py"],
        env=environ | spark_start(environ, archive), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "UTC false True\n"
    assert "archive" not in done.stderr.lower(), "Java complains of one that is not there"
    loaded = (tmp_path / "loaded classes").read_text()
    from_archive = loaded.count("source: shared objects file (top)")
    assert (from_archive > 5000) == there, from_archive


def test_a_process_that_was_started_with_the_options_does_not_double_them() -> None:
    first = spark_start({"SPARK_SUBMIT_OPTS": "-Dsite=1"})
    assert first["SPARK_SUBMIT_OPTS"].endswith(" -Dsite=1")
    assert spark_start(first) == first


def test_a_sites_own_memory_is_kept() -> None:
    assert spark_start({"SPARK_DRIVER_MEMORY": "5g"})["SPARK_DRIVER_MEMORY"] == "5g"


def test_a_sites_own_configuration_is_left_alone() -> None:
    assert spark_start({"SPARK_CONF_DIR": "/etc/spark"}) == {}
