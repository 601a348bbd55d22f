"""A real HDFS: a namenode and a datanode in one process, by Hadoop's own small cluster."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from tests.spark.maven import jars

# As Spark's own jars of Hadoop, with which it shares its classes; and what it is made with.
CLUSTER = (
    "org.apache.hadoop:hadoop-client-minicluster:3.5.0",
    "org.junit.jupiter:junit-jupiter-api:5.11.4",
    "org.junit.platform:junit-platform-commons:1.11.4",
    "org.opentest4j:opentest4j:1.3.0",
)


@contextmanager
def hdfs(folder: Path) -> Iterator[str]:
    """Yield the URI of an empty HDFS, whose files are in a folder.

    It needs Java, and 56 MB of Maven Central, which are fetched once; the test is skipped where
    they can't be had.
    """
    try:
        needed = jars(*CLUSTER).split(",")
    except OSError as error:
        pytest.skip(f"this test needs {CLUSTER[0]} from Maven Central ({error})")
    jars_of_spark = Path(pyspark.__file__).parent / "jars" / "*"
    details, log = folder / "details.json", folder / "log"
    folder.mkdir()
    with log.open("w") as out:
        cluster = subprocess.Popen(
            ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dtest.build.data={folder}/data",
             "-cp", os.pathsep.join([*needed, str(jars_of_spark)]),
             "org.apache.hadoop.mapreduce.MiniHadoopClusterManager", "-nomr", "-format",
             "-writeDetails", details],
            stdout=out, stderr=subprocess.STDOUT, cwd=folder,
        )  # fmt: skip
    try:
        until = time.monotonic() + 120
        while not (details.exists() and details.read_text().endswith("}")):
            assert cluster.poll() is None, log.read_text()
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.1)
        yield f"hdfs://localhost:{json.loads(details.read_text())['namenode_port']}"
    finally:
        cluster.kill()
        cluster.wait()
