"""A real YARN: a resource and a node manager in one process, by Hadoop's own small cluster."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyspark
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from tests.spark.hdfs import CLUSTER
from tests.spark.maven import jars

_MORE = (  # which its resource manager is made with
    "org.bouncycastle:bcprov-jdk18on:1.78.1",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "org.bouncycastle:bcutil-jdk18on:1.78.1",
)
_SETTINGS = {
    "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nodemanager.delete.debug-delay-sec": "600",  # so that a test can say what a driver said
    "yarn.nodemanager.resource.memory-mb": "8192",
    "yarn.scheduler.minimum-allocation-mb": "128",
    "yarn.scheduler.capacity.root.queues": "default",
    "yarn.scheduler.capacity.root.default.capacity": "100",
    "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
}


class Yarn:
    """A cluster: where its settings are (`conf`), and what became of the applications in it."""

    def __init__(self, folder: Path, cluster: Any) -> None:
        self._folder, self._cluster = folder, cluster
        self.conf = folder / "conf"

    def applications(self) -> dict[str, str]:
        """Return the states of all applications by their ids."""
        found = self._cluster.getResourceManager().getRMContext().getRMApps()
        return {str(one.getApplicationId()): str(one.getState()) for one in found.values()}

    def said(self) -> str:
        """Return what all drivers and executors have written."""
        logs = sorted(self._folder.rglob("stderr")) + sorted(self._folder.rglob("stdout"))
        return "\n".join(f"{path}\n{path.read_text()[-5000:]}" for path in logs)


@contextmanager
def yarn(folder: Path) -> Iterator[Yarn]:
    """Yield a cluster whose files are in a folder.

    It needs Java, and 68 MB of Maven Central, which are fetched once; the test is skipped where
    they can't be had.
    """
    try:
        needed = jars(*CLUSTER, *_MORE).split(",")
    except OSError as error:
        pytest.skip(f"this test needs {CLUSTER[0]} from Maven Central ({error})")
    jars_of_spark = Path(pyspark.__file__).parent / "jars"
    (folder / "conf").mkdir(parents=True)
    with (folder / "log").open("w") as log:
        port, process = launch_gateway(
            jarpath=str(next(jars_of_spark.glob("py4j*.jar"))),
            classpath=os.pathsep.join([*needed, str(jars_of_spark / "*")]),
            javaopts=["-Xmx700m", "-XX:TieredStopAtLevel=1", f"-Dtest.build.data={folder}/data"],
            die_on_exit=True, redirect_stdout=log, redirect_stderr=log, return_proc=True,
            cwd=str(folder),
        )  # fmt: skip
    gateway = JavaGateway(gateway_parameters=GatewayParameters(port=port))
    try:
        jvm: Any = gateway.jvm
        settings = jvm.org.apache.hadoop.yarn.conf.YarnConfiguration()
        for name, value in _SETTINGS.items():
            settings.set(name, value)
        cluster = jvm.org.apache.hadoop.yarn.server.MiniYARNCluster("weir", 1, 1, 1)
        cluster.init(settings)
        cluster.start()
        assert cluster.waitForNodeManagersToConnect(60_000), (folder / "log").read_text()
        file = jvm.java.io.FileOutputStream(str(folder / "conf/yarn-site.xml"))
        cluster.getConfig().writeXml(file)
        file.close()
        yield Yarn(folder, cluster)
    finally:
        gateway.close()
        process.kill()
        process.wait()
