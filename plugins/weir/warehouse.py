"""Where data lies: paths below the warehouse and below the configured roots.

`<stream id>/_weir_tx=<n>/_weir_attempt=<n>/_weir_segment=<id>/_weir_task=<n>/*.parquet` below the
warehouse: each attempt has a folder that nobody else writes to.
"""

import os
import uuid
from collections.abc import Iterable

import pyarrow as pa
from pyarrow import fs

from weir.errors import InvalidInput, InvariantViolation
from weir.settings import one_spelling

MARK = "_weir_installation"
SKIPPED = 1_000_000  # how far beyond what is known a restored database goes on


def stream_folder(stream_id: int) -> str:
    """The folder of one life of a stream, below the warehouse, ending in a slash."""
    return f"{stream_id}/"


def attempt_folder(stream_id: int, transaction_number: int, attempt: int) -> str:
    """The folder of one attempt, below the warehouse, ending in a slash."""
    return f"{stream_folder(stream_id)}_weir_tx={transaction_number}/_weir_attempt={attempt}/"


def filesystem(root: str) -> tuple[fs.FileSystem, str]:
    """The file system of a root (a local path or a URI) and the root's path in it: pyarrow's, or,
    where this process has a JVM, Hadoop's as one of pyarrow's.

    Raises InvalidInput for one that neither knows.
    """
    if "://" not in root:
        return fs.LocalFileSystem(), root.rstrip("/")
    ways = [_by_pyarrow, _by_hadoop]
    if root.startswith(("hdfs://", "viewfs://")):
        # pyarrow would start a JVM of its own for these, in which renaming replaces no file.
        ways.reverse()
    reasons = []
    for way in ways:
        try:
            found, path = way(root)
            return found, path.rstrip("/")
        except (pa.ArrowInvalid, OSError) as error:
            by = "pyarrow" if way is _by_pyarrow else "Hadoop"
            reasons.append(f"by {by}: " + str(error).partition("\n")[0])
    raise InvalidInput(
        "location_not_usable",
        f"{root!r} can't be opened ({'; '.join(reasons)}): use a folder or a URI with file, s3a, "
        "gs or abfss; what only Hadoop knows needs a job under spark-submit, or a program with a "
        "Spark session, that has its jars and settings.",
    )


def _by_pyarrow(root: str) -> tuple[fs.FileSystem, str]:
    found: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(root.replace("s3a://", "s3://", 1))
    return found


def _by_hadoop(root: str) -> tuple[fs.FileSystem, str]:
    try:
        from weir.spark.hadoop import filesystem as of_hadoop
    except ImportError as error:  # of pyspark, which not every process has
        raise OSError(f"this process has no JVM ({error})") from None
    return of_hadoop(root)


def spark_path(root: str, relative: str = "") -> str:
    """A path below a root as Spark takes it: always a URI."""
    base = root if "://" in root else "file://" + root
    return f"{base.rstrip('/')}/{relative}" if relative else base


def below_root(given: str, roots: Iterable[str], what: str) -> tuple[str, str]:
    """The root and the path below it that `given` names: absolute, or relative to the first root
    that is a folder (to the first of all, if all are URIs).

    Links are followed first, so that a link inside a root can't lead out of it. Raises InvalidInput
    naming the roots.
    """
    roots = list(roots)
    if not given or not roots or "\0" in given:
        raise InvalidInput(
            "path_not_allowed", f"the {what} {given!r} is not a path below a configured root."
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


def claim(
    root: str,
    installation_id: str,
    new: bool,
    tide: int = 0,
    moved: bool = False,
    seen: tuple[str, int] | None = None,
) -> None:
    """Check that the warehouse carries the installation's id; a `new` installation writes it.

    `tide`: how often this database has swept (see `mark`); `moved`: whether it is where it was;
    `seen`: what `read_mark` returned before the database was asked for these (None: read it now).
    Raises InvariantViolation when the warehouse carries another id, or none although something was
    committed: it is another database's, or the folder that should be mounted there is not. Also
    when it was swept more often than the database knows: then the database was restored from a
    backup; and when the database `moved`: then it may have been.
    """
    found, swept = seen or read_mark(root)
    if not found and new and not moved:
        mark(root, installation_id, tide)
        return
    if found != installation_id and not (moved and new and not found):
        belongs = f"belongs to installation {found}" if found else f"has no file {MARK}"
        raise InvariantViolation(
            "warehouse_not_owned",
            f"the warehouse {root} {belongs}, but this database is installation {installation_id}: "
            "check the settings warehouse and database, and its mount; nothing was touched.",
        )
    if swept > tide:
        raise InvariantViolation(
            "database_restored",
            f"this database is older than its warehouse {root} (swept {tide} times here, {swept} "
            "times there): it was restored from a backup; run weir_recover before anything else. "
            "Nothing was touched.",
        )
    if moved:
        raise InvariantViolation(
            "incarnation_changed",
            "this database was restored from a backup, moved, or taken over by a standby since it "
            f"last fitted its warehouse {root}, and may have forgotten what was committed there; "
            "run weir_recover before anything else. Nothing was touched.",
        )


def check_unused(root: str, folder: str) -> None:
    """Check that nothing lies in the folder of an attempt that begins to write.

    Raises InvariantViolation when something does: its number was handed out before, by a database
    that knew more than this one. The mark then says so to all others until weir_recover has run.
    """
    system, base = filesystem(root)
    if system.get_file_info(f"{base}/{folder}".rstrip("/")).type == fs.FileType.NotFound:
        return
    installation_id, swept = read_mark(root)
    mark(root, installation_id, swept + SKIPPED)
    raise InvariantViolation(
        "unknown_files_found",
        f"files lie below {folder} of the warehouse {root} already, although nothing was written "
        "there by this database: it was restored from a backup; run weir_recover before anything "
        "else. Nothing was touched.",
    )


def mark(root: str, installation_id: str, tide: int) -> None:
    """Write whose the warehouse is, and how often it was swept; of the same installation never less
    than is there, as of two sweeps at once the slower one has the smaller number, and an alarm of
    `check_unused` stays."""
    files, base = filesystem(root)
    files.create_dir(base, recursive=True)
    path = f"{base}/{MARK}"
    written = f"{path}.{uuid.uuid4().hex}"  # whole or not at all: a kill leaves no empty mark
    with files.open_output_stream(written) as out:
        out.write(f"{installation_id}\n{tide}\n".encode())
    # No file system compares and renames in one step: what somebody writes between these two calls
    # is lost. Then a backup that is older than that sweep is known by the next one.
    found, swept = read_mark(root)
    if found == installation_id and swept > tide:
        files.delete_file(written)
    else:
        files.move(written, path)


def read_mark(root: str) -> tuple[str, int]:
    """The installation whose the warehouse is, and how often it was swept; empty without a mark."""
    files, base = filesystem(root)
    path = f"{base}/{MARK}"
    if files.get_file_info(path).type != fs.FileType.File:
        return "", 0
    with files.open_input_stream(path) as stream:
        found, _, tide = stream.read().decode().strip().partition("\n")
    return found.strip(), int(tide.strip() or 0)
