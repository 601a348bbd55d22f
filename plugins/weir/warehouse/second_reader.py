"""Another reader of Parquet files, in a process of its own: pyarrow ends the process at some
damaged files, and may take all its memory.

`python -m weir.warehouse.second_reader ROOT PATH` reads a whole file and prints what is wrong with
it. Its exit status is 0 if nothing is, 1 if something is, and 2 if it could not look.
"""

import os
import subprocess
import sys
from collections import deque

import pyarrow.parquet as pq

from weir.errors import WeirError
from weir.warehouse.filesystem import filesystem

_LONGEST = 600  # seconds


def damage_of_parquet(root: str, path: str) -> str | None:
    """Return what pyarrow says is wrong with a Parquet file below a root. Return None if it can
    read the whole file, or can't look."""
    command = [sys.executable, "-P", "-m", "weir.warehouse.second_reader", root, path]
    # -P: a module of the folder that the job happens to be in is none of this process's.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode < 0:
        return f"another reader, pyarrow, was ended at it by signal {-done.returncode}"
    return done.stdout.strip() or "it can't be read" if done.returncode == 1 else None


def _read(root: str, path: str) -> int:
    try:
        system, base = filesystem(root)
        source = system.open_input_file(f"{base}/{path}")
    except (OSError, WeirError):
        return 2
    try:
        with source:
            file = pq.ParquetFile(source, page_checksum_verification=True)
            deque(file.iter_batches(), maxlen=0)
    except (OSError, ValueError, NotImplementedError) as error:  # pyarrow's errors are among these
        print(str(error).strip().partition("\n")[0] or type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    # Not through exit handlers: pyarrow's threads may hang after a damaged file.
    status = _read(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    os._exit(status)
