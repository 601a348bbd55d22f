"""What `weir doctor` asks of a cluster, and says of what came back: no Spark is started."""

import json
import os
import sys
from pathlib import Path

import pytest

from weir.spark.base.executors import Seen
from weir.terminal.doctor_cluster import (
    check_cluster,
    failed,
    lacks,
    named_master,
    said,
    use_named_master,
)

PYTHON = "./weir/bin/python (spark.pyspark.python, with weir.tar.gz#weir)"
CONNECTION = json.dumps({"conn_type": "spark", "host": "spark://c", "port": 7077})


def seen(host: str = "a", problem: str = "", shares: bool | None = True) -> Seen:
    return Seen(host, "/usr/bin/python3", "3.11.2", "21.0.0", problem, shares)


@pytest.mark.parametrize(
    ("environ", "master"),
    [
        ({}, "local"),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.ui.enabled=false pyspark-shell"}, "local"),
        ({"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell"}, "yarn"),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.master=yarn --master k8s://c x"}, "k8s://c"),
        ({"PYSPARK_SUBMIT_ARGS": "--conf spark.a=b --conf 'spark.master=spark://c:1'"},
         "spark://c:1"),
        ({"AIRFLOW_CONN_SPARK_DEFAULT": CONNECTION}, "spark://c:7077"),
        ({"AIRFLOW_CONN_SPARK_DEFAULT": "spark://user@host"}, "local"),
        ({"AIRFLOW_CONN_SPARK_DEFAULT": CONNECTION, "PYSPARK_SUBMIT_ARGS": "--master local[2]"},
         "local[2]"),
    ],
)  # fmt: skip
def test_the_master_is_the_one_that_jobs_are_started_with(
    environ: dict[str, str], master: str
) -> None:
    assert named_master(environ) == master


def test_the_master_may_be_in_the_file_of_sparks_settings(tmp_path: Path) -> None:
    file = tmp_path / "spark-defaults.conf"
    file.write_text("# spark.master  no\nspark.master.rest.enabled true\nspark.master   yarn\n")
    environ = {"SPARK_CONF_DIR": str(tmp_path)}
    assert named_master(environ) == "yarn"
    assert named_master(environ | {"PYSPARK_SUBMIT_ARGS": "--master local x"}) == "local"


def test_executors_that_have_all_are_named_with_their_python() -> None:
    [check] = said("yarn", PYTHON, "s3a://lake", [seen("a"), seen("b")])
    assert check.ok
    assert check.found == f"yarn on a, b: Python 3.11.2, pyarrow 21.0.0, {PYTHON}"
    [check] = said("yarn", PYTHON, "hdfs://lake", [seen(shares=None)])
    assert check.ok
    assert "the warehouse was not tried" in check.found


def test_executors_that_can_not_write_the_warehouse_or_have_another_one_are_named() -> None:
    found = [seen("a", problem="Permission denied"), seen("b", shares=False), seen("c")]
    unable, apart = said("yarn", PYTHON, "/data", found)
    assert (unable.ok, apart.ok) == (False, False)
    assert unable.found == "they can't write /data (a: Permission denied)"
    assert "spark.executorEnv" in unable.remedy
    assert apart.found == "/data is another folder there (b)"


def test_a_python_that_is_missing_or_of_another_version_or_lacks_packages_is_named() -> None:
    missing = failed(PYTHON, 'java.io.IOException: Cannot run program "./weir/bin/python": ', "x")
    assert missing.found == f"they have no Python {PYTHON}"
    text = (
        "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in "
        "driver: 3.11, PySpark cannot run with different minor versions."
    )
    other = failed(PYTHON, text, "x")
    ours = f"{sys.version_info[0]}.{sys.version_info[1]}"
    assert other.found == f"their Python {PYTHON} is Python 3.9, this program's is {ours}"
    lacking = lacks(PYTHON, ["pyarrow", "xxhash"])
    assert lacking.found == f"their Python {PYTHON} lacks pyarrow, xxhash"
    for one in (missing, other, lacking):
        assert one.ok is False
        assert "spark.archives" in one.remedy
    assert failed(PYTHON, "...", "the disk is full").found.endswith("the disk is full")


def test_a_master_of_airflow_is_given_to_the_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--conf a=b pyspark-shell")
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", CONNECTION)
    assert use_named_master() == "spark://c:7077"
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "--master spark://c:7077 --conf a=b pyspark-shell"


def test_spark_in_one_process_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", "--master local[4] pyspark-shell")
    assert list(check_cluster(None, use_named_master())) == []  # type: ignore[arg-type]  # it needs no setting
