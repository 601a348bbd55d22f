"""The actions of the jobs in `spark_jobs`, found by their files: nobody imports a job.

Whoever adds a file there adds an action, with all that is made of it: a DAG with its form, a
command, a method of the opened installation, an operator, and a job that spark-submit runs.
"""

import importlib.util
import sys
from collections.abc import Collection, Iterator, Mapping
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


class Jobs(Mapping[str, Action[Any, Any]]):
    """The actions of the jobs in a folder, by their names, in the order of their subjects. A job is
    imported when somebody asks for it, so a command pays for its own."""

    def __init__(self, folder: Path) -> None:
        self._files = {file.stem: file for file in sorted(folder.glob("[a-z]*.py"))}
        self._found: dict[str, Action[Any, Any]] = {}
        self._broken: dict[str, str] = {}

    @property
    def names(self) -> Collection[str]:
        """Return the names of all jobs, also of those that can't be imported."""
        return self._files.keys()

    def __getitem__(self, name: str) -> Action[Any, Any]:
        """Return an action. Raises KeyError for one that is not there, or can't be imported."""
        if name not in self._found and name not in self._broken:
            file = self._files[name]
            try:
                self._found[name] = _load(file).ACTION
            except (Exception, SystemExit) as error:  # one job hides itself alone
                self._broken[name] = (
                    f"job {file} can't be imported ({type(error).__name__}: {error}), so its DAG, "
                    "command and method are missing; correct it."
                )
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        found = [name for name in self._files if name in self]
        subjects = {name: _SUBJECTS.index(self[name].subject) for name in found}
        return iter(sorted(found, key=lambda name: (subjects[name], name)))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def broken(self) -> dict[str, str]:
        """Return of each job that can't be imported why."""
        list(self)
        return dict(self._broken)


class Forms(Mapping[str, type[Any]]):
    """The forms of actions, by the names of these."""

    def __init__(self, actions: Jobs) -> None:
        self._actions = actions

    @property
    def names(self) -> Collection[str]:
        """Return the names of all jobs, which need not be imported for that."""
        return self._actions.names

    def __getitem__(self, name: str) -> type[Any]:
        return self._actions[name].form

    def __iter__(self) -> Iterator[str]:
        return iter(self._actions)

    def __len__(self) -> int:
        return len(self._actions)


ACTIONS = Jobs(beside("spark_jobs"))
FORMS = Forms(ACTIONS)
