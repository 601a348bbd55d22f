"""A local session starts tasks whose data is on a machine that is not its own."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.release

_TWO_TASKS = """
import sys
from pyspark.sql import SparkSession
from weir.spark.base.session import session
spark = session("near") if sys.argv[1] == "weir" else SparkSession.builder.getOrCreate()
jvm, sc = spark._jvm, spark.sparkContext._jsc.sc()
def places(*hosts):
    return jvm.scala.jdk.javaapi.CollectionConverters.asScala(list(hosts)).toSeq()
here = sc.statusTracker().getExecutorInfos()[0].host()
rows = [jvm.scala.Tuple2(1, places(here)), jvm.scala.Tuple2(2, places("elsewhere.example.org"))]
tag = jvm.scala.reflect.ClassTag.apply(jvm.java.lang.Class.forName("java.lang.Object"))
print("counted", sc.makeRDD(places(*rows), tag).count())
"""


def two_tasks(how: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _TWO_TASKS, how], capture_output=True, text=True, timeout=60,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    return done.stdout + done.stderr * (done.returncode != 0)


def test_jobs_do_not_hang_where_spark_does() -> None:
    assert "counted 2" in two_tasks("weir")
    with pytest.raises(subprocess.TimeoutExpired):
        two_tasks("plain")
