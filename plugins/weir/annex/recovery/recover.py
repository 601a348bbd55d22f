"""Reconcile a database that was restored from a backup, moved or failed over with its warehouse.

The database has forgotten the appends, scales and truncations since its backup, but the warehouse
still has their files. The transaction and segment numbers that the database gives out from now on,
and with them the folders, offsets and clocks, must be higher than those it gave out before. The
names of the folders show the highest ones; since some left no folder, a million more are skipped.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NotRequired, TypedDict

from sqlalchemy import Connection

from weir.annex.recovery.inventory import (
    Found,
    Known,
    discard_unknown,
    known_files,
    list_files,
    unknown_in,
)
from weir.annex.recovery.lost_events import LostReport, lost_in
from weir.annex.recovery.substitutes import Substitute, find_substitutes, substitute
from weir.compaction.run import Check
from weir.controller.locks import lock_streams
from weir.controller.ownership import check_owner, read_installation
from weir.controller.scale import scale_in
from weir.controller.transactions import discard_attempts
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.errors import check_choice
from weir.model.key_space import KeyRange
from weir.queries.annex.recovery import recover as sql
from weir.queries.controller import epochs
from weir.retention.delete_stream import Forgotten
from weir.seams import hung
from weir.warehouse.marker import RECOVERY_GAP, Marker, read_marker, write_marker

UNKNOWN_FILES = ("report", "keep", "delete")
_EXAMPLES = 20


class Certified(TypedDict):
    """What a certificate says of an erasure, and whether the database knows it, and its key."""

    request: str
    stream: str
    asked_at: str
    reason: str
    keys: int
    condition: str
    events: dict[str, int]
    known: bool
    signed: bool


class ErasedSince(TypedDict):
    """What may have been erased after the backup. `unknown_since`: not known from this time on.
    `files`, `examples`: whose events may be back. `certificates`: what the given ones say. `then`:
    what is to be done."""

    unknown_since: str | None
    files: NotRequired[int]
    examples: NotRequired[list[str]]
    certificates: NotRequired[list[Certified]]
    then: list[str]


class Recovered(TypedDict):
    """A stream whose numbers were raised, and how many appends it has `forgotten`."""

    stream: str
    forgotten: int
    segments: list[str]


class RecoverReport(TypedDict):
    """How database and warehouse differ: whether the database may have been restored, and whether
    the warehouse was elsewhere; how many files only the warehouse (`unknown`, up to 20 paths) or
    only the database has (`missing`), of how many of these others have the events, by a compaction
    (`found`), and what is `lost` with the rest. `streams`: those that were reconciled."""

    restored: bool
    moved: bool
    unknown_files: int
    unknown: list[str]
    missing_files: int
    missing: list[str]
    found: int
    lost: list[LostReport]
    streams: NotRequired[list[Recovered]]
    erased: NotRequired[ErasedSince]


@dataclass(frozen=True)
class BeforeRecovery:
    """A seam: `look` returns what certificates of erasures and the files of a warehouse say that
    the database does not know (`unknown_since`, and `then`, what to do), before it is recovered."""

    look: Callable[[Database, str, Sequence[str]], ErasedSince]


def recover(
    database: Database,
    warehouse: str,
    *,
    unknown_files: str = "report",
    second_name: bool = False,
    check: Check | None = None,
    request_id: str,
) -> RecoverReport:
    """Compare the database with its warehouse and report the differences. With `unknown_files`
    `keep` or `delete`, also reconcile them so that jobs may run again.

    `unknown_files`: `report` changes nothing; `keep` leaves files that the database does not know
    where they are, also those of appends that it knows as aborted; `delete` makes garbage of them.
    `second_name`: this place is another name of the folder that is known, so both stay right.
    Otherwise it was moved, or copied with the database, and the old place is refused from then on.
    `check`: reads files that are to take the place of missing ones, and raises InvariantViolation
    if their events are not those that were committed.

    Raises InvalidInput for another value of `unknown_files`, and InvariantViolation if the
    warehouse belongs to another installation.
    """
    check_choice("unknown_files", unknown_files, UNKNOWN_FILES)
    marker = read_marker(warehouse)  # first: see check_warehouse_ownership
    installation = read_installation(database)
    incarnation = database.transaction(sql.incarnation)
    check_owner(warehouse, installation, marker)
    # Both before and after, as others may append and delete meanwhile: what is missing was known
    # before and still is, what is unknown was not known afterwards, either.
    before = database.transaction(known_files)
    there = list_files(warehouse)
    known = database.transaction(known_files)
    unknown = {s: unknown_in(found, known) for s, found in there.items()}
    on_disk = {path for found in there.values() for path in found.files}
    missing = sorted((before.files & known.files) - on_disk)
    chosen = _substitutes(database, warehouse, missing, there, known)
    found_of, lost = _found(database, missing, chosen)
    report: RecoverReport = {
        "restored": installation.may_be_restored(marker),
        "moved": not marker.is_at(warehouse),
        "unknown_files": sum(map(len, unknown.values())),
        "unknown": sorted(path for paths in unknown.values() for path in paths)[:_EXAMPLES],
        "missing_files": len(missing),
        "missing": missing[:_EXAMPLES],
        "found": found_of,
        "lost": lost,
    }
    if unknown_files == "report":
        return report
    # So far ahead that a copy which is left behind elsewhere is known by its count.
    sweeps = max(installation.sweep_count, marker.sweep_count) + RECOVERY_GAP
    accepted = Marker(installation.installation_id, sweeps)
    elsewhere = report["moved"] and not second_name
    left_behind = installation.sweep_count - marker.sweep_count >= RECOVERY_GAP
    nothing_lost = not report["restored"] and not left_behind and not chosen
    if unknown_files == "keep" and report["moved"] and nothing_lost:
        # The database knows everything, so nothing that runs need be disturbed.
        write_marker(warehouse, accepted, moved=elsewhere)
        commit_once(database, lambda c: _count_sweeps(c, marker.sweep_count, incarnation))
        return {**report, "streams": []}
    skipped = []
    for stream_id in known.streams:
        found, substitutes = there.get(stream_id, Found()), chosen.get(stream_id, [])
        needed = {file.path for one in substitutes for file in one.files}
        deleted = [path for path in unknown.get(stream_id, []) if path not in needed]
        one = partial(
            _skip, stream_id=stream_id, found=found,
            unknown=deleted if unknown_files == "delete" else None, request_id=request_id,
        )  # fmt: skip
        skipped.append(commit_once(database, one))
        if substitutes:
            done = substitute(database, warehouse, stream_id, substitutes, check)
            chosen[stream_id] = done
            copied = {file.path for one in done if one.itself is None for file in one.files}
            if unknown_files == "delete":
                more = [path for path in unknown.get(stream_id, []) if path in copied]
                commit_once(
                    database, partial(_discard, stream_id=stream_id, paths=more, found=found)
                )
    if chosen:
        report["found"], report["lost"] = _found(database, missing, chosen)
    strangers = [path for s, paths in unknown.items() if s not in known.streams for path in paths]
    highest = max([s for s in there if s is not None] + [0])
    deleted = strangers if unknown_files == "delete" else []
    # The marker first: after a kill here it is ahead of the database, which says what must be done.
    write_marker(warehouse, accepted, moved=elsewhere)
    commit_once(database, lambda c: _end(c, highest, deleted, marker.sweep_count, incarnation))
    return {**report, "streams": skipped}


def _substitutes(
    database: Database,
    warehouse: str,
    missing: Sequence[str],
    there: Mapping[int | None, Found],
    known: Known,
) -> dict[int, list[Substitute]]:
    """Return by stream what can take the place of missing files."""
    of_stream: dict[int, list[str]] = defaultdict(list)
    for path in missing:
        folder = path.partition("/")[0]
        if folder.isdigit() and int(folder) in known.streams:
            of_stream[int(folder)].append(path)
    chosen = {
        s: find_substitutes(database, warehouse, s, paths, there.get(s, Found()), known)
        for s, paths in of_stream.items()
    }
    return {s: some for s, some in chosen.items() if some}


def _found(
    database: Database, missing: Sequence[str], chosen: Mapping[int, Sequence[Substitute]]
) -> tuple[int, list[LostReport]]:
    """Return how many missing files others replace, and what is lost with the rest."""
    replaced = {file.path for some in chosen.values() for one in some for file in one.old}
    lost = [path for path in missing if path not in replaced]
    return len(missing) - len(lost), database.snapshot(lambda c: lost_in(c, lost))


def _discard(connection: Connection, stream_id: int, paths: list[str], found: Found) -> None:
    lock_streams(connection, ids=[stream_id])
    discard_unknown(connection, stream_id, paths, found)


def _skip(
    connection: Connection,
    stream_id: int,
    found: Found,
    unknown: list[str] | None,
    request_id: str,
) -> Recovered:
    """Advance the stream's counters past every folder number, clock and offset that it may have
    issued. `unknown`: files to make garbage of."""
    stream = lock_streams(connection, ids=[stream_id])[0]
    for annex in hung(Forgotten):  # what they made since the backup is not known
        annex.forget(connection, stream_id)
    # Forgotten, not aborted: whoever repeats one must not have its number again, whose folder may
    # be that of an append which was committed after the backup.
    forgotten = sql.forget_appends(connection, stream_id=stream_id)
    sql.forget_compactions(connection, stream_id=stream_id)
    if unknown is None:
        sql.keep_aborted(connection, stream_id=stream_id)
    else:
        open_ones = [
            (one.transaction_number, one.attempt) for one in forgotten if one.state == "open"
        ]
        discard_attempts(connection, stream_id, open_ones)
        discard_unknown(connection, stream_id, unknown, found)
    sql.skip(
        connection, stream_id=stream_id, transaction=found.transaction, newest=found.newest,
        skipped=RECOVERY_GAP,
    )  # fmt: skip
    created = []
    if stream.state == "active":
        number = max(stream.next_segment_number, found.segment_number + 1) + RECOVERY_GAP
        active = epochs.active_segments(connection, stream_id=stream_id)
        created = scale_in(
            connection, replace(stream, next_segment_number=number), active,
            [s.segment_id for s in active], [KeyRange(s.key_low, s.key_high) for s in active],
            cause="scale", reason="the database was restored from a backup", request_id=request_id,
        )  # fmt: skip
    else:
        epochs.tick(connection, stream_id=stream.stream_id)
    return {
        "stream": str(stream.name),
        "forgotten": len(forgotten),  # appends that were open or aborted
        "segments": [segment.name for segment in created],
    }


def _end(
    connection: Connection, highest: int, strangers: list[str], swept: int, incarnation: str
) -> None:
    """Raise the numbers that groups and new streams will get above all earlier ones, and allow
    sweeps again."""
    sql.lock_groups(connection)
    sql.lock_stores(connection)
    discard_unknown(connection, None, strangers, Found())  # the stores are locked: nobody publishes
    sql.raise_ids(connection, highest=highest, skipped=RECOVERY_GAP)
    sql.skip_groups(connection, skipped=RECOVERY_GAP)
    sql.skip_stores(connection, skipped=RECOVERY_GAP)
    _count_sweeps(connection, swept, incarnation)


def _count_sweeps(connection: Connection, swept: int, incarnation: str) -> None:
    """Raise the count of sweeps, and let this database be the one that uses the warehouse."""
    sql.count_sweeps(connection, swept=swept, skipped=RECOVERY_GAP, incarnation=incarnation)
