"""Keep what a sweep was about to delete, if it is not what was recorded, or is no garbage."""

from collections.abc import Sequence
from itertools import groupby

from sqlalchemy import Connection

from weir.annex.verification.damage import record
from weir.annex.verification.footers import UNOPENED, look_here
from weir.annex.verification.footers_in_tasks import looker
from weir.annex.verification.recorded import Damage, Recorded
from weir.database.connection import Database
from weir.installation.opened import StartSpark
from weir.queries.annex.verification import kept as sql
from weir.queries.retention.garbage import Sweepable
from weir.retention.garbage import NEEDED, Kept

GARBAGE = "garbage"  # the kind of damage
FEW = 5_000  # files: looking at so many here takes no longer than starting executors


def keep(
    database: Database, warehouse: str, rows: Sequence[Sweepable], start_spark: StartSpark | None
) -> Kept:
    """Return which of some rows of garbage a sweep may delete, and record as damage what is not
    what was recorded, and what streams or stores still need. `start_spark`: in whose tasks many
    footers are looked at; None: in this process.

    Compared are files of which the hash of the end is recorded. What was erased is not, because a
    person has asked for its deletion. A file that can't be opened is left for the next sweep.
    """
    compared = [
        row for row in rows
        if row.end_hash is not None and row.reason != "erased" and not row.live
    ]  # fmt: skip
    recorded = [Recorded(row.path, row.bytes, row.rows or 0, row.end_hash) for row in compared]
    look = looker(start_spark, few=FEW) if start_spark is not None else look_here
    seen = look(warehouse, recorded) if recorded else []
    wrong = {row.path: one[0] for row, one in zip(compared, seen, strict=True) if one}
    may: list[Sweepable] = []
    found: list[tuple[int | None, Damage]] = []
    unopened: list[str] = []
    for row in rows:
        kind, what = wrong.get(row.path, ("", "")) if not row.root else ("", "")
        if row.live:
            kind, what = GARBAGE, NEEDED
        if kind in ("", "missing"):  # a sweep that was killed may have deleted it
            may.append(row)
        elif kind == UNOPENED:
            unopened.append(what)
        else:
            found.append((row.stream_id, Damage(GARBAGE, row.path, what)))
    found.sort(key=lambda one: (one[0] or 0, one[1].path))
    for stream_id, part in groupby(found, lambda one: one[0]):
        some = [one for _, one in part]
        database.transaction(lambda c, s=stream_id, d=some: record(c, s, d, looked_at=[], kinds=()))  # type: ignore[misc]  # the loop's own
    kept = [f"{one.path} is kept ({one.what}): see weir.damage" for _, one in found]
    return Kept(may, kept, unopened)


def let_go(connection: Connection, stream_id: int | None) -> int:
    """Let sweeps delete what was kept of a stream (None: of all), whatever it is; forget that what
    streams or stores need is garbage. Return how many files these were."""
    return sql.let_go(connection, stream_id=stream_id)


def forget_kept(connection: Connection, paths: Sequence[str]) -> None:
    """Forget the damage of garbage that was deleted."""
    sql.forget_garbage(connection, paths=paths)
