"""The seams on which annexes hang: the core asks what hangs on one, and names no annex.

An annex is a folder of `weir/annex` that can be taken away. Its module `seams` has the objects that
it hangs on the core; what a seam is, is a class of the room that asks for it. Beside these, an
annex has jobs, which are found by their files, and a folder of SQL (`weir.database.definitions`).
"""

import importlib
from typing import TypeVar

from weir.source_tree import LIBRARY

T = TypeVar("T")


def hung(seam: type[T]) -> list[T]:
    """Return what annexes hang on a seam, in the order of the annexes' names."""
    found = []
    for file in sorted((LIBRARY / "annex").glob("*/seams.py")):
        module = importlib.import_module(f"weir.annex.{file.parent.name}.seams")
        found += [one for one in vars(module).values() if isinstance(one, seam)]
    return found
