"""Compare the footers of many files with what was recorded, in whichever process can reach them."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain

from pyarrow import fs

from weir.annex.verification.files import look_at_footer
from weir.annex.verification.recorded import Recorded
from weir.warehouse.filesystem import filesystem

THREADS = 16  # that wait for the ends of files
# Files: to hand each to a thread of its own would cost as much as to read its end.
_TOGETHER = 32
UNOPENED = "unopened"  # the kind of what is no damage: the file is there, and can't be opened

Wrong = list[tuple[str, str]]  # of a file: kinds and words
# Looks at the footers of files below a warehouse.
Look = Callable[[str, Sequence[Recorded]], list[Wrong]]


def look_here(warehouse: str, files: Sequence[Recorded]) -> list[Wrong]:
    """Return what is wrong with each file, looked at by a few threads of this process."""
    system, base = filesystem(warehouse)
    parts = [files[first : first + _TOGETHER] for first in range(0, len(files), _TOGETHER)]
    with ThreadPoolExecutor(THREADS) as pool:
        return list(chain.from_iterable(pool.map(partial(_look_at_some, system, base), parts)))


def opened(seen: list[Wrong]) -> list[Wrong]:
    """Return what was seen of files. Raises OSError if one of them could not be opened."""
    for wrong in seen:
        for kind, what in wrong:
            if kind == UNOPENED:
                raise OSError(what)
    return seen


def _look_at_some(system: fs.FileSystem, base: str, files: Sequence[Recorded]) -> list[Wrong]:
    return [_look_at_one(system, base, file) for file in files]


def _look_at_one(system: fs.FileSystem, base: str, file: Recorded) -> Wrong:
    try:
        return look_at_footer(system, base, file)
    except OSError as error:
        return [(UNOPENED, f"{file.path} can't be opened ({error})")]
