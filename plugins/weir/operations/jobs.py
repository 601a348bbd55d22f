"""The actions of the jobs in `spark_jobs`, found by their files: nobody imports a job.

Whoever adds a file there adds an action, with all that is made of it: a DAG with its form, a
command, a method of the opened installation, an operator, and a job that spark-submit runs.
"""

import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from weir.operations.action import DATA, READER_GROUPS, STREAMS, UPKEEP, Action
from weir.source_tree import beside

_SUBJECTS = (STREAMS, READER_GROUPS, DATA, UPKEEP)  # in the order in which people meet them


def _load(file: Path) -> ModuleType:
    """Return a job's module, under one name in the source tree and in the wheel."""
    name = f"weir.spark_jobs.{file.stem}"
    found = importlib.util.spec_from_file_location(name, file)
    assert found is not None
    assert found.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(found)
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def find_jobs(folder: Path) -> tuple[dict[str, Action[Any]], dict[str, str]]:
    """Return the actions of the jobs in a folder by their names, in the order of their subjects;
    and of each job that can't be imported, why."""
    found: dict[str, Action[Any]] = {}
    broken: dict[str, str] = {}
    for file in sorted(folder.glob("[a-z]*.py")):
        try:
            found[file.stem] = _load(file).ACTION
        except (Exception, SystemExit) as error:  # one job hides itself alone
            broken[file.stem] = (
                f"job {file} can't be imported ({type(error).__name__}: {error}), so its DAG, "
                "command and method are missing; correct it."
            )
    ordered = sorted(found, key=lambda name: (_SUBJECTS.index(found[name].subject), name))
    return {name: found[name] for name in ordered}, broken


ACTIONS, BROKEN = find_jobs(beside("spark_jobs"))
FORMS: Mapping[str, type[Any]] = {name: action.form for name, action in ACTIONS.items()}
