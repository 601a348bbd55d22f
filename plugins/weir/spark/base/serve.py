"""Serve Spark Connect on this machine: `python -m weir.spark.base.serve PORT [IDLE SECONDS]`.

The process has the JVM, and starts another when that has ended. It listens on 127.0.0.1, and to who
has the token in SPARK_CONNECT_AUTHENTICATE_TOKEN. After so many idle seconds it ends by itself; 0:
never. SIGTERM ends it when what runs has ended, but soon.
"""

import contextlib
import logging
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]
from py4j.protocol import Py4JJavaError
from pyspark import SparkConf, SparkContext

from weir.spark.base import rows_read
from weir.spark.base.java import java_class
from weir.spark.base.python_workers import SAME_CODE, fingerprint
from weir.spark.base.rows_read import SERVICE

log = logging.getLogger("weir")
GIVEN_BY = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
DAEMON = "weir.spark.base.daemon"
# What whoever starts it may set otherwise, by SPARK_SUBMIT_OPTS or a SPARK_CONF_DIR.
USUAL = {
    "spark.master": "local[*]",
    "spark.default.parallelism": str(os.cpu_count() or 2),  # programs ask for it
    "spark.sql.session.timeZone": "UTC",
    "spark.locality.wait": "0",  # as a local session of a job has it
    "spark.scheduler.mode": "FAIR",
    "spark.scheduler.allocation.file": str(
        Path(__file__).parents[2] / "local/spark-conf/fairscheduler.xml"
    ),
    # What a program that was killed has left: what it ran, and then its session. One that lives may
    # wait for Postgres, or for a person, meanwhile.
    "spark.connect.execute.manager.detachedTimeout": "5m",
    "spark.connect.session.manager.defaultSessionTimeout": "30m",
}
# What it must be.
FIXED = {
    "spark.app.name": "weir",
    "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.sql.artifact.isolation.enabled": "true",  # no session sees the functions of others
    "spark.ui.showConsoleProgress": "false",  # into the log
    "spark.python.daemon.module": DAEMON,
    SAME_CODE: fingerprint(),  # Python workers need not be sent it
}
DRAIN = 10.0  # seconds for what runs when it is to end
_LOOK = 5.0  # seconds between two looks at what there is
_DAEMON_IDLE = 30.0
_AGAIN_AFTER = 10.0
_SESSION = re.compile("SparkConnect_OperationTag_User_.*_Session_([-0-9a-f]{36})_Operation_")


class Served:
    """The server of this process, from its start to its end."""

    def __init__(self, port: int) -> None:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        SparkContext._ensure_initialized()
        conf = SparkConf()
        for name, value in USUAL.items():
            conf.setIfMissing(name, value)
        for name, value in {**FIXED, "spark.connect.grpc.binding.port": str(port)}.items():
            conf.set(name, value)
        self.context = SparkContext(conf=conf)
        if address := self.context.uiWebUrl:  # for sessions that are made from now on
            self.context._jsc.sc().conf().set("spark.weir.pages", address)
        self._jvm = psutil.Process(SparkContext._gateway.proc.pid)  # type: ignore[union-attr]
        self._used = time.monotonic()
        self._without_workers: dict[int, float] = {}  # since when, by process

    def lives(self) -> bool:
        """Return whether the JVM does."""
        return bool(SparkContext._gateway.proc.poll() is None)  # type: ignore[union-attr]

    def runs(self) -> bool:
        """Return whether an operation of a session does."""
        service = self.context._jvm.org.apache.spark.sql.connect.service.SparkConnectService  # type: ignore[union-attr]
        return bool(service.listActiveExecutions().isRight())

    def cancel_left(self) -> None:
        """Cancel the jobs of sessions that are over. An operation that is interrupted before its
        first job has begun may begin it afterwards, in another thread, and Spark ends that never.
        """
        core = self.context._jsc.sc()
        known, begun = core.statusStore(), dict[int, str]()
        for job in core.statusTracker().getActiveJobIds():
            with contextlib.suppress(Py4JJavaError):  # it has ended, and is forgotten
                if by := _SESSION.search(str(known.job(job).jobTags().mkString(","))):
                    begun[int(job)] = by[1]
        if begun:  # asked after the jobs: theirs were there before them
            there = java_class(self.context._jvm, SERVICE).sessionManager().listActiveSessions()
            live = {str(there.apply(i).sessionId()) for i in range(int(there.length()))}
            for number in [number for number, by in begun.items() if by not in live]:
                log.info("job %d is cancelled: the session that began it is over", number)
                core.cancelJob(number)

    def idle(self) -> float:
        """Return for how many seconds nothing has run, as far as anybody looked."""
        if self.runs():
            self._used = time.monotonic()
        return time.monotonic() - self._used

    def end_daemons(self) -> None:
        """End the processes of sessions that are over. Spark starts a Python of its own for each
        session, which forks the workers, and ends the workers only. If its session goes on after
        all, Spark starts another."""
        now, found = time.monotonic(), {}
        for one in self._jvm.children():
            try:
                if DAEMON in one.cmdline() and not one.children():
                    found[one.pid] = self._without_workers.get(one.pid, now)
                    if now - found[one.pid] > _DAEMON_IDLE:
                        one.terminate()
            except psutil.Error:
                pass  # it has ended
        self._without_workers = found

    def kill(self) -> None:
        """End the JVM at once, if it lives."""
        with contextlib.suppress(psutil.Error):
            self._jvm.kill()
            self._jvm.wait()

    def end(self) -> None:
        """Wait for what runs, but not for long, and end the JVM."""
        until = time.monotonic() + DRAIN
        while self.runs() and time.monotonic() < until:
            time.sleep(0.2)
        self.context.stop()


def main(port: int, idle: float, again: bool) -> int:
    """Serve until somebody ends it, or it has been idle for so long. Return the exit status."""
    logging.basicConfig(format="%(asctime)s weir: %(message)s", level=logging.WARNING)
    log.setLevel(logging.INFO)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)  # of who starts it, and has a session
    if not os.environ.get(GIVEN_BY):
        log.error("the server of Spark Connect needs a token; give it one in %s.", GIVEN_BY)
        return 2
    served = None
    try:
        served = Served(port)
        log.info("Spark Connect listens on port %d", port)
        while not ended.wait(_LOOK) and served.lives():
            served.end_daemons()
            with contextlib.suppress(Py4JJavaError):  # it looks again
                served.cancel_left()
            rows_read.tell(served.context)
            if 0 < idle < served.idle():
                ended.set()
        if served.lives():
            served.end()
        if ended.is_set():
            return 0
        log.error("the JVM of Spark Connect has ended; another is started")
    except Exception:
        if ended.is_set():
            return 0
        log.exception("Spark Connect can't be served")
        if served is None and not again:
            return 1
        if served is None:
            ended.wait(_AGAIN_AFTER)
        else:  # the JVM has died while it was asked, or says what nobody understands
            served.kill()
    # Not in this process, which has what it knew of the other JVM.
    command = [sys.executable, "-P", "-m", "weir.spark.base.serve", str(port), str(idle), "again"]
    os.execv(command[0], command)  # noqa: S606  # the process of the server stays the same


if __name__ == "__main__":
    given = [*sys.argv[1:], "0", ""]
    sys.exit(main(int(given[0]), float(given[1]), "again" in given))
