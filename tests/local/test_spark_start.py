"""How Spark starts on one machine: with Weir's settings, and with classes from an archive."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from weir.local.spark_start import ARCHIVE, class_archive, make_archive, spark_start

JOB = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.getOrCreate()
heap = spark._jvm.java.lang.Runtime.getRuntime().maxMemory() >> 20
print(spark.conf.get("spark.sql.session.timeZone"), spark.conf.get("spark.ui.enabled"), heap > 1500)
"""


@pytest.mark.jvm
def test_a_job_starts_with_the_settings_and_with_the_archive(tmp_path: Path) -> None:
    (tmp_path / "job.py").write_text(JOB)
    environ = {name: value for name, value in os.environ.items() if name != "SPARK_SUBMIT_OPTS"}
    environ["SPARK_SUBMIT_OPTS"] = f"-Xlog:class+load:file='{tmp_path}/loaded classes'"
    done = subprocess.run(
        ["spark-submit", "--master", "local[1]", tmp_path / "job.py"],
        env=environ | spark_start(environ), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "UTC false True\n"
    loaded = (tmp_path / "loaded classes").read_text()
    assert loaded.count("source: shared objects file (top)") > 5000


@pytest.mark.jvm
def test_java_knows_the_options_that_a_job_starts_with() -> None:
    options = shlex.split(spark_start({}, archive="")["SPARK_SUBMIT_OPTS"])
    done = subprocess.run(
        ["java", *options, "-XX:+PrintFlagsFinal", "-version"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    flags = dict(re.findall(r"(Tier4\w+Threshold|UseSerialGC) += (\w+)", done.stdout))
    assert flags["UseSerialGC"] == "true"
    assert flags["Tier4InvocationThreshold"] == "100000"


@pytest.mark.jvm
def test_java_says_nothing_of_an_archive_that_is_not_there(tmp_path: Path) -> None:
    options = shlex.split(class_archive(tmp_path / "not there.jsa"))
    done = subprocess.run(
        ["java", *options, "-version"], capture_output=True, text=True, check=True
    )
    assert "archive" not in (done.stdout + done.stderr).lower()


def test_a_process_that_was_started_with_the_options_does_not_double_them() -> None:
    first = spark_start({"SPARK_SUBMIT_OPTS": "-Dsite=1"})
    assert first["SPARK_SUBMIT_OPTS"].endswith(" -Dsite=1")
    assert spark_start(first) == first


def test_a_sites_own_memory_is_kept() -> None:
    assert spark_start({"SPARK_DRIVER_MEMORY": "5g"})["SPARK_DRIVER_MEMORY"] == "5g"


def test_a_sites_own_configuration_is_left_alone() -> None:
    assert spark_start({"SPARK_CONF_DIR": "/etc/spark"}) == {}


@pytest.mark.jvm
def test_an_archive_that_is_cut_off_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A JVM would crash on it, and so would every job."""
    whole = ARCHIVE.read_bytes()
    real = Path(sys.executable)
    programs = {
        "python": f"""exec '{real}' "$@" """,
        "spark-submit": f"""case "$SPARK_SUBMIT_OPTS" in
            *ArchiveClassesAtExit*) cp '{tmp_path}/cut off' ./spark-classes.jsa ;;
            *) exec '{real.with_name("spark-submit")}' "$@" ;;
            esac""",
    }
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    archive = tmp_path / "spark-classes.jsa"
    (tmp_path / "cut off").write_bytes(whole[:5_000_000])
    with pytest.raises(subprocess.CalledProcessError):
        make_archive(archive)
    assert not archive.exists()
    (tmp_path / "cut off").write_bytes(whole)
    make_archive(archive)
    assert archive.exists(), "the same with a whole one"
