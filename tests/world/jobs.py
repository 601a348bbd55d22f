"""Run jobs from their command lines, in this process."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weir.operations import runner
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS

Work = Callable[[Job, Any], Mapping[str, Any]]


def main(name: str, work: Work, argv: Sequence[str]) -> int:
    """Run a job as spark-submit does, with `work` as the run of its action; returns its status."""
    action = replace(ACTIONS[name], run=work, said=lambda *_: "done")
    return runner.main(action, argv)


def run_job(name: str, argv: Sequence[str]) -> int:
    """Run a job as spark-submit does, in the session of the tests; returns its status."""
    return main(name, ACTIONS[name].run, argv)
