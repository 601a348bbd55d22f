"""The seams on which annexes hang: the core asks what hangs on one, and names no annex.

An annex is a folder of `weir/annex` that can be taken away. Its module `seams` has the objects that
it hangs on the core, `in_airflow` those that need Airflow; what a seam is, is a class of the room
that asks for it. Beside these, an annex has jobs and DAG files, which are found by their files, and
a folder of SQL (`weir.database.definitions`).
"""

import importlib
from typing import TypeVar

from weir.source_tree import LIBRARY

T = TypeVar("T")


def hung(seam: type[T], where: str = "seams") -> list[T]:
    """Return what annexes hang on a seam, in the order of their names. `where`: the module of each
    that has it."""
    found = []
    for file in sorted((LIBRARY / "annex").glob(f"*/{where}.py")):
        module = importlib.import_module(f"weir.annex.{file.parent.name}.{where}")
        found += [one for one in vars(module).values() if isinstance(one, seam)]
    return found
