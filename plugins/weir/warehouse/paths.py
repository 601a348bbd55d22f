"""Paths below the warehouse and below the configured roots, and the names of their folders.

Files are `<stream id>/_weir_tx=<n>/_weir_attempt=<n>/_weir_segment=<id>/_weir_task=<n>/*.parquet`
below the warehouse; those of an adjunct store are
`_weir_adjunct=<store id>/version=<n>/attempt=<n>/{table,history}/*.parquet`. Each attempt has a
folder that nobody else writes to. The metadata of a stream that is published as an Iceberg table
is `<stream id>/_weir_iceberg/<number>/*`.

A task number stands for a task and a segment. So transaction and task alone identify a folder, and
the numbers are dense: they index constant arrays.
"""

import os
import re
import stat
from collections.abc import Iterable

from weir.errors import InvalidInput
from weir.model.names import shortened
from weir.settings import one_spelling

# What the folders of a stream's files are called. Spark reads each as a column.
TRANSACTION, ATTEMPT, SEGMENT, TASK = "_weir_tx", "_weir_attempt", "_weir_segment", "_weir_task"
REJECTED_SEGMENT = -1  # the folder of rejected rows
ADJUNCT = "_weir_adjunct="  # what the paths of the files of adjunct stores begin with
_BATCH, _VERSION, _TRY = "batch", "version", "attempt"  # of outputs, and of adjunct stores
# The folder of a transaction, of a batch or of a store's version, and what is in it.
MADE = re.compile(rf"/({TRANSACTION}=|({_BATCH}|{_VERSION})=[^/]*(/{_TRY}=[^/]*)?$)")


def stream_folder(stream_id: int) -> str:
    """Return the folder of one life of a stream, below the warehouse, ending in a slash."""
    return f"{stream_id}/"


def attempt_folder(stream_id: int, transaction_number: int, attempt: int) -> str:
    """Return the folder of one attempt, below the warehouse, ending in a slash."""
    return f"{stream_folder(stream_id)}{TRANSACTION}={transaction_number}/{ATTEMPT}={attempt}/"


def publication_folder(stream_id: int, number: int) -> str:
    """Return the folder of what a publication writes, below the warehouse, ending in a slash."""
    return f"{table_folder(stream_id)}{number}/"


def table_folder(stream_id: int) -> str:
    """Return the folder of the metadata of a published table, below the warehouse, ending in a
    slash. No file of the stream lies below it."""
    return f"{stream_folder(stream_id)}_weir_iceberg/"


def adjunct_folder(store_id: int) -> str:
    """Return the folder of one life of an adjunct store, below the warehouse, ending in a slash."""
    return f"{ADJUNCT}{store_id}/"


def adjunct_attempt_folder(store_id: int, version: int, attempt: int) -> str:
    """Return the folder of one attempt at a version, below the warehouse, ending in a slash."""
    return f"{adjunct_folder(store_id)}{_VERSION}={version}/{_TRY}={attempt}/"


def group_folder(path: str, group: str) -> str:
    """Return the folder of all that a group writes to an output, below its root."""
    return f"{path}/group={group}"


def output_folder(path: str, group: str, batch: str, attempt: int, again: int = 0) -> str:
    """Return the folder of one attempt at a batch, below its root, ending in a slash. `again`: how
    often the attempt has written the output before."""
    more = f".{again}" if again else ""
    return f"{group_folder(path, group)}/{_BATCH}={batch}/{_TRY}={attempt}{more}/"


def spark_path(root: str, relative: str = "") -> str:
    """Return a path below a root in the form that Spark takes: always a URI."""
    base = root if "://" in root else "file://" + root
    return f"{base.rstrip('/')}/{relative}" if relative else base


def not_regular(what: str, path: str) -> InvalidInput:
    """Return the error that a path that was given is neither a file nor a folder."""
    return InvalidInput(
        "file_invalid",
        f"the {what} {shortened(path)} is a pipe, a socket or a device, which can't be read twice; "
        "copy what it has into a file, and name that.",
    )


def check_regular(path: str, what: str) -> None:
    """Raise InvalidInput for what is there and is neither a file nor a folder: to open a pipe waits
    for whoever writes to it."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # whoever opens it says it better
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise not_regular(what, path)


def below_root(given: str, roots: Iterable[str], what: str) -> tuple[str, str]:
    """Return the root and the path below it that `given` names.

    `given` is absolute, or relative to the first root that is a folder (to the first root if all
    are URIs). Links are followed first, so that a link inside a root cannot lead out of it. Raises
    InvalidInput naming the roots.
    """
    roots = list(roots)
    if not given or not roots or "\0" in given:
        raise InvalidInput(
            "path_not_allowed",
            f"the {what} {given!r} is not a path below a configured root; write it without .. and "
            "NUL.",
        )
    base = next((root for root in roots if "://" not in root), "")
    if not base and "://" not in given and not given.startswith("/"):
        given = f"{roots[0]}/{given}"
    real = os.path.realpath(os.path.join(os.path.realpath(base), given))
    spelled = one_spelling(given) if "://" in given else given
    for root in roots:
        if "://" in root or "://" in given:
            prefix = root.rstrip("/") + "/"
            if spelled.startswith(prefix):
                return root.rstrip("/"), spelled[len(prefix) :]
            continue
        real_root = os.path.realpath(root)
        if real.startswith(real_root + os.sep):
            return real_root, os.path.relpath(real, real_root)
    raise InvalidInput(
        "path_not_allowed",
        f"the {what} {given!r} is outside the configured roots ({', '.join(roots)}); move it below "
        "one of them, or add its folder to weir.toml.",
    )


def lies_below(root: str, path: str, roots: Iterable[str]) -> bool:
    """Return whether a path below a root, as it is recorded, lies below one of some roots. A copy
    of an installation has the paths of the original, and the login of a team can record any."""
    try:
        below_root(f"{root}/{path}", roots, "path")
    except InvalidInput:
        return False
    return True


def is_of_group(path: str, group: str) -> bool:
    """Return whether a recorded path below an output root is of what a group has written."""
    return f"{group_folder('', group)}/" in f"/{path}" and ".." not in path.split("/")
