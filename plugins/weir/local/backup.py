"""Back up an installation while writers go on: its database, and the files that this names.

The database is dumped *after* the files were copied, and what it names beyond them is copied then.
Of the two orders only this one can end with nothing missing: a file that a sweep deletes between
the dump and its copy is one that the database does not name any more, so the next dump does not
either. So nothing is held back, neither a writer nor an erasure, and no grace has to be long enough
(docs/decisions/0104). What a dump names is asked of the snapshot that it dumps.

A backup is a folder: `weir.dump`, `files.jsonl`, `warehouse/`, and `backup.json`, which is written
last. Without it the backup is not finished, and the same command goes on with it.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pyarrow import fs
from sqlalchemy import Connection

import weir
from weir.controller.ownership import check_owner, read_installation
from weir.database.connection import Database
from weir.database.migrate import newest_layout
from weir.errors import Busy, Conflict, InvalidInput, InvariantViolation, counted
from weir.local.copied_files import Listed, Place, copy, delete_others, each
from weir.local.postgres_programs import programs_for
from weir.queries.local import backups as sql
from weir.warehouse.filesystem import FULL, disk_full, filesystem
from weir.warehouse.marker import MARKER, read_marker

MANIFEST, DUMP, LIST, FILES = "backup.json", "weir.dump", "files.jsonl", "warehouse"
_JOURNAL = "copied.jsonl"  # what was copied by a backup that is not finished
_ROUNDS = 20  # each copies only what was written during the one before

Say = Callable[[str], object]


@dataclass(frozen=True)
class Manifest:
    """What a backup says of itself. `server`: the version of PostgreSQL; `programs`: that of what
    dumped it. `copied`: whether the warehouse is in it. `lacks`: files that were missing. `owner`:
    who owns what Weir made, and `incarnation`: of which one the database said that it was; empty if
    that was not written down."""

    weir: str
    layout: str
    installation_id: str
    at: str
    server: int
    programs: int
    dump_sha256: str
    list_sha256: str
    files: int
    bytes: int
    warehouse: str
    copied: bool
    marker: str
    roles: Sequence[str]
    lacks: Sequence[str]
    owner: str = ""
    incarnation: str = ""


@dataclass(frozen=True)
class _Seen:
    """A moment of the database, which its dump has."""

    moment: sql.Moment
    files: list[Listed]
    roles: list[str]
    programs: int


def back_up(
    database: Database, dsn: str, warehouse: str, folder: Path, *, copied: bool, say: Say
) -> Manifest:
    """Back up into a folder that is new, empty, or has a backup that was not finished.

    `database`, `dsn`: with the login of the database's owner. `copied`: copy the warehouse; else it
    is left where it is, and only listed. Raises Busy if another backup writes there, and
    InvalidInput if the folder has something else.
    """
    marker = read_marker(warehouse)
    check_owner(warehouse, read_installation(database), marker)
    if not marker.installation_id:
        raise Conflict(
            "not_started",
            f"nothing was ever appended to the warehouse {warehouse}, or it is not there; append "
            "first, or mount it.",
        )
    with said_full(f"of the backup {folder}"), _only(folder, warehouse, marker.installation_id):
        for left in folder.glob(f"{DUMP}.*"):  # by one that was killed
            left.unlink()
        source = Place(*filesystem(warehouse))
        target = Place(fs.LocalFileSystem(), str(folder / FILES)) if copied else None
        known = {one.path: one for one in _continued(folder / _JOURNAL)}
        if target is not None:
            say("copying the warehouse")
            there = [Listed(*one) for one in database.snapshot(sql.files)]
            _fetch(folder, source, target, there, known, say)
        before, dump = set[str](), folder / f"{DUMP}.{uuid.uuid4().hex}"
        for _ in range(_ROUNDS):
            seen = _dump(database, dsn, dump, say)
            lacks = _fetch(folder, source, target, seen.files, known, say)
            # What is named still, and was not there before, is lost; a sweep had forgotten it.
            if lacks <= before:
                break
            before = lacks
        else:
            raise Busy(
                "lock_held",
                "the warehouse changes faster than it can be copied; run this again, which "
                "continues with what was copied.",
            )
        there = [known.get(f.path, f) if target else f for f in seen.files if f.path not in lacks]
        return _finish(folder, dump, seen, there, sorted(lacks), warehouse, source, copied, say)


def _dump(database: Database, dsn: str, file: Path, say: Say) -> _Seen:
    """Dump the database, and return what it names at that moment."""

    def dump(connection: Connection) -> _Seen:
        moment = sql.moment(connection)
        programs = programs_for(moment.server)
        say(f"dumping the database by the programs of PostgreSQL {programs.version}")
        programs.run(
            "pg_dump", dsn, "-Fc", "-N", "weir_restoring", f"--snapshot={moment.snapshot}",
            "-f", str(file),
        )  # fmt: skip
        files = [Listed(*one) for one in sql.files(connection)]
        return _Seen(moment, files, sql.roles(connection), programs.version)

    return database.snapshot(dump)


def _fetch(
    folder: Path, source: Place, target: Place | None, files: Sequence[Listed],
    known: dict[str, Listed], say: Say,
) -> set[str]:  # fmt: skip
    """Copy files, or look whether they are there; return those that are not, or not as recorded."""
    lacks = set[str]()
    if target is None:
        looked = each("found", files, lambda one: _as_recorded(source, one), say)
        return {one.path for one, found in looked if found is None}
    new = [one for one in files if one.path not in known]
    with (folder / _JOURNAL).open("a") as journal:
        for one, found in each("copied", new, lambda one: copy(source, target, one.path), say):
            if found is None or found.bytes != one.bytes:
                lacks.add(one.path)
                continue
            known[one.path] = found
            journal.write(json.dumps(found) + "\n")
            journal.flush()
    return lacks


def _as_recorded(source: Place, one: Listed) -> Listed | None:
    return one if source.size(one.path) == one.bytes else None


def _finish(
    folder: Path, dump: Path, seen: _Seen, files: Sequence[Listed], lacks: Sequence[str],
    warehouse: str, source: Place, copied: bool, say: Say,
) -> Manifest:  # fmt: skip
    """Write down what the backup has, and read it back, before it counts."""
    written = "".join(json.dumps(one) + "\n" for one in files).encode()
    marker = list[bytes]()
    source.read(MARKER, marker.append)
    dump.replace(folder / DUMP)
    (folder / LIST).write_bytes(written)
    found = Place(fs.LocalFileSystem(), str(folder)).read(DUMP)
    assert found is not None
    manifest = Manifest(
        weir.__version__, newest_layout(), str(seen.moment.installation_id), seen.moment.at,
        seen.moment.server, seen.programs, found.sha256, hashlib.sha256(written).hexdigest(),
        len(files), sum(one.bytes for one in files), warehouse, copied,
        b"".join(marker).decode(), seen.roles, lacks, seen.moment.owner, seen.moment.incarnation,
    )  # fmt: skip
    if copied:
        # What was erased or swept meanwhile is not kept by a backup, either.
        delete_others(folder / FILES, {one.path for one in files})
    if damaged := check(folder, manifest, say):
        (folder / _JOURNAL).unlink()  # copied anew by the next try
        raise InvariantViolation(
            "file_missing",
            f"{counted(len(damaged), 'file')} of the backup can't be read back as written, such as "
            f"{damaged[0]}; look at the disk of {folder}, and run this again.",
        )
    new = folder / f"{MANIFEST}.new"
    new.write_text(json.dumps(asdict(manifest), indent=2) + "\n")
    for name in (DUMP, LIST, new.name):
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())
    new.replace(folder / MANIFEST)
    (folder / _JOURNAL).unlink()
    return manifest


def check(folder: Path, manifest: Manifest, say: Say) -> list[str]:
    """Read a backup back: that its dump can be restored, and that each file has the digest of what
    was copied. Return the files that have not."""
    place = Place(fs.LocalFileSystem(), str(folder))
    for name, digest in ((DUMP, manifest.dump_sha256), (LIST, manifest.list_sha256)):
        found = place.read(name)
        if found is None or found.sha256 != digest:
            raise InvariantViolation(
                "file_missing",
                f"{name} of the backup {folder} is missing or damaged; use another backup.",
            )
    # This reads the whole archive, and writes what it would run.
    programs_for(manifest.programs).run(
        "pg_restore", "", "-f", os.devnull, str((folder / DUMP).absolute())
    )
    if not manifest.copied:
        return []
    files, below = read_list(folder / LIST), Place(place.system, str(folder / FILES))
    looked = each("read back", files, lambda one: below.read(one.path), say)
    return [one.path for one, found in looked if found != one]


def read_list(file: Path) -> list[Listed]:
    """Return the files of a list; of one that is written still, without a last line that is cut.
    Raises InvalidInput for a path that leads out of the warehouse: who made it is not known."""
    lines = file.read_text().splitlines(keepends=True)
    found = [Listed(*json.loads(one)) for one in lines if one.endswith("\n")]
    for one in found:
        if {"", ".", ".."} & {*one.path.split("/")}:
            raise InvalidInput(
                "argument_invalid",
                f"{file} names {one.path!r}, which is no file below a warehouse; use a backup that "
                "you know.",
            )
    return found


def _continued(journal: Path) -> list[Listed]:
    """Return what was copied already, and let its journal go on after its last whole line."""
    found = read_list(journal) if journal.exists() else []
    new = journal.with_suffix(".new")
    new.write_text("".join(json.dumps(one) + "\n" for one in found))
    new.replace(journal)
    return found


def read_manifest(folder: Path) -> Manifest:
    """Return what a backup says of itself. Raises InvalidInput if it is none, or not finished."""
    try:
        return Manifest(**json.loads((folder / MANIFEST).read_text()))
    except FileNotFoundError:
        unfinished = (folder / _JOURNAL).exists() or any(folder.glob(f"{DUMP}*"))
        what = "was not finished; run the backup again" if unfinished else "is none; check its path"
        raise InvalidInput("argument_invalid", f"the backup {folder} {what}.") from None
    except (OSError, ValueError, TypeError) as error:
        raise InvalidInput(
            "argument_invalid", f"{MANIFEST} of {folder} can't be read ({error}); check its path."
        ) from None


@contextlib.contextmanager
def _private() -> Iterator[None]:
    """Let files be made for their owner alone, also by programs that are started."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def said_full(whose: str) -> Iterator[None]:
    """Say of a full disk whose it is, such as "of the backup /backups/monday"."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise disk_full(os.strerror(error.errno), whose) from error
        raise


@contextlib.contextmanager
def _only(folder: Path, warehouse: str, installation_id: str) -> Iterator[None]:
    """Let one backup at a time, of one installation, write into a folder, for its owner alone."""
    if "://" not in warehouse and folder.resolve().is_relative_to(Path(warehouse).resolve()):
        raise InvalidInput(
            "argument_invalid",
            f"{folder} is in the warehouse, to which it is unknown; give a folder elsewhere.",
        )
    started = (folder / "backup.lock").exists()
    if folder.exists() and not started and any(folder.iterdir()):
        raise InvalidInput("argument_invalid", f"{folder} is not empty; give a folder that is new.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.stat().st_uid != os.geteuid():
        raise InvalidInput(
            "argument_invalid",
            f"{folder} belongs to another user, who could read the backup; give a folder of yours.",
        )
    folder.chmod(0o700)  # what is in the database is in the dump, too
    with _private(), (folder / "backup.lock").open("a+") as lock:
        lock.seek(0)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy(
                "lock_held",
                f"another backup ({' '.join(lock.read().split()[1:])}) writes into {folder}; wait "
                "until it ends.",
            ) from None
        if (folder / MANIFEST).exists():
            raise InvalidInput(
                "argument_invalid", f"{folder} has a backup already; give a folder that is new."
            )
        if lock.readline().strip() not in ("", installation_id):
            raise InvalidInput(
                "argument_invalid", f"{folder} has another installation; give a folder that is new."
            )
        lock.truncate(0)
        lock.write(f"{installation_id}\nprocess {os.getpid()} of {platform.node()}\n")
        lock.flush()
        yield
