"""Prove recorded cuts: compare the footers of the files before them with what was recorded.

Each file is looked at once, when the first cut after its commit is recorded. How far that has come
is the clock of a commit in `verification`, of each stream.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TypedDict

from sqlalchemy import Connection

from weir.annex.verification import damage
from weir.annex.verification.damage import OF_FILES
from weir.annex.verification.footers import Look, Wrong, opened
from weir.annex.verification.recorded import File
from weir.annex.verification.verify import Verified, VerifyReport, by_pyarrow, damage_of, verify
from weir.controller.ownership import check_warehouse_ownership
from weir.errors import counted
from weir.installation.opened import Installation
from weir.queries.annex.verification import prove as sql

FILES = 20_000  # looked at in a run, and the rest of the last commit
AGAIN_AFTER = 3600.0  # seconds after which the contents of a stream are read once more


class ProvenReport(TypedDict):
    """What was looked at, what is wrong, and the streams of which not all cuts are proven. `read`:
    the contents that were read in turn."""

    files: int
    bytes: int
    streams: int
    damage: dict[str, int]
    behind: list[str]
    damaged: list[str]
    read: VerifyReport | None


@dataclass
class Proven:
    """What a run has looked at, and which streams have cuts that are not proven."""

    seen: Verified = field(default_factory=Verified)  # the footers of new files
    read: Verified | None = None  # contents of files in turn
    behind: list[str] = field(default_factory=list)  # more of their files are to be looked at
    damaged: list[str] = field(default_factory=list)

    def report(self) -> ProvenReport:
        """Return it as a part of the report of a job."""
        return {
            "files": self.seen.files, "bytes": self.seen.bytes, "streams": len(self.seen.streams),
            "damage": dict(sorted(self.seen.damage.items())),
            "behind": self.behind, "damaged": self.damaged,
            "read": self.read.report() if self.read else None,
        }  # fmt: skip


def said_of(report: ProvenReport) -> str:
    """Return what was looked at, and what is not proven, for a sentence."""
    said = f"{counted(report['files'], 'new file')} compared with the record"
    if behind := report["behind"]:
        said += f", others of {counted(len(behind), 'stream')} left for the next run"
    if damaged := report["damaged"]:
        said += f"; {counted(len(damaged), 'stream')} not proven, see weir.damage: {damaged[0]}"
    return said + (" ..." if len(damaged) > 1 else "")


def prove(app: Installation, look: Look, most: int = FILES) -> Proven:
    """Compare the footers of the files of commits before cuts that are not proven, and call those
    cuts proven before which all files were looked at, of streams without damage.

    `most`: about how many files are looked at; of the streams with the fewest first, so that one
    with very many does not keep others waiting. The next run goes on there. Nothing is read where
    no file is new. A file that was swept or compacted meanwhile is no damage.

    If some are new, contents are read in turn after that, up to `verify_bytes`.

    Raises InvariantViolation as `verify` does, and OSError if a file can't be opened.
    """
    taken, files = app.database.snapshot(lambda c: _taken(c, most))
    done = Proven()
    if files:
        warehouse = app.settings.warehouse
        check_warehouse_ownership(app.database, warehouse)
        wrong = opened(look(warehouse, [file.recorded for _, file in files]))
        if any(kind in ("missing", "unreadable") for one in wrong for kind, _ in one):
            check_warehouse_ownership(app.database, warehouse)  # not if all of it is away
        seen = list(zip(files, wrong, strict=True))
        done.seen = app.database.transaction(lambda c: _record(c, seen))
    for stream, behind in app.database.transaction(lambda c: _prove(c, taken)):
        (done.behind if behind else done.damaged).append(stream)
    if files and (most_bytes := app.settings.verify_bytes):
        done.read = verify(
            app, contents=by_pyarrow(app, contents=True), most_bytes=most_bytes,
            again_after=AGAIN_AFTER,
        )  # fmt: skip
    return done


def must_be_right(proven: Proven, report: Mapping[str, object]) -> None:
    """Raise Incomplete with the report of a run if it has found damage."""
    for seen in (proven.seen, proven.read):
        if seen is not None and (error := seen.error(report)) is not None:
            raise error


Stream = tuple[int, str]  # id and name


def _taken(
    connection: Connection, most: int
) -> tuple[dict[int, int | None], list[tuple[Stream, File]]]:
    """Return up to which clock each stream can be looked at in this run, and its files."""
    rows = sql.commits(connection, most=most)
    names = [row.stream_name for row in rows for _ in row.numbers]
    numbers = [number for row in rows for number in row.numbers]
    files = sql.files(connection, names=names, numbers=numbers) if numbers else []
    until = {row.stream_id: row.until for row in rows}
    return until, [((row.stream_id, row.stream_name), File(*row[2:])) for row in files]


def _record(connection: Connection, seen: Iterable[tuple[tuple[Stream, File], Wrong]]) -> Verified:
    """Record the damage of files, and return what was looked at."""
    done = Verified()
    known = {*sql.damaged(connection)}
    for (stream_id, name), part in groupby(seen, lambda one: one[0][0]):
        of_stream = [(file, wrong) for (_, file), wrong in part]
        found = [damage_of(file, *one) for file, wrong in of_stream for one in wrong]
        if found or stream_id in known:
            paths = [file.path for file, _ in of_stream]
            done.count(damage.record(connection, stream_id, found, looked_at=paths, kinds=OF_FILES))
        done.streams.append(name)
        done.files += len(of_stream)
        done.events += sum(file.events for file, _ in of_stream)
        done.bytes += sum(file.bytes for file, _ in of_stream)
    return done


def _prove(connection: Connection, taken: dict[int, int | None]) -> list[tuple[str, bool]]:
    """Record how far files were looked at, and which cuts that proves. Return the streams with
    others, and whether there is more to look at."""
    if moved := {stream_id: until for stream_id, until in taken.items() if until is not None}:
        sql.move(connection, ids=[*moved], clocks=[*moved.values()])
    sql.prove(connection)
    return [(row.stream_name, row.more) for row in sql.left_over(connection)]
