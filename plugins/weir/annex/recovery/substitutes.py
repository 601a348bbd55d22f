"""Find files that have the events of missing ones, and put them in their place.

A database that is restored from a backup knows the files that a compaction has replaced since, and
misses those that were swept; what was written then says in its footer which events it has. A
database that is newer than its warehouse knows the new file, and misses that; what it was made of
has the numbers of its transactions in its paths. Neither is believed: the clock of each row must be
that of the commit which the time index has at its offset, and the digests must be those recorded.
"""

import re
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from sqlalchemy import Connection

from weir.annex.recovery.holes import Chunk, add_holes, chunks_of
from weir.annex.recovery.inventory import Found, Known, unknown_in
from weir.compaction import records
from weir.compaction.description import Description, description_in
from weir.compaction.records import Written
from weir.compaction.rewrite import Unreadable, put_in_one
from weir.compaction.run import Check
from weir.database.connection import Database
from weir.database.once import commit_once
from weir.errors import InvariantViolation, Unavailable, WeirError
from weir.model.compaction import Small
from weir.model.schema import CLOCK, OFFSET
from weir.queries.annex.recovery import substitutes as sql
from weir.seams import hung
from weir.warehouse.filesystem import filesystem, not_writable
from weir.warehouse.footer import ranks_of, read_footer
from weir.warehouse.paths import ATTEMPT, SEGMENT, TRANSACTION

_LEASE = 300.0  # seconds; it is renewed
_THREADS = 16  # that wait for footers
_PLACE = re.compile(rf"[0-9]+/{TRANSACTION}=([0-9]+)/{ATTEMPT}=([0-9]+)/{SEGMENT}=([0-9]+)/.*")
_DAMAGED = (OSError, pa.ArrowException, ValueError, OverflowError)


@dataclass(frozen=True)
class ErasedAgain:
    """A seam: `record` gets how many events new files of a stream lack that a compaction, by its
    number, had before it."""

    record: Callable[[Connection, int, int, int, Sequence[Written]], None]


class _Seen(NamedTuple):
    """What the path and the footer of a file say of it."""

    path: str
    transaction: int
    attempt: int
    segment_id: int
    bytes: int
    rows: int
    first_seq: int
    last_seq: int
    end_hash: int
    described: Description | None

    @property
    def events(self) -> int:
        """How many offsets it has; more than rows if events were erased."""
        return self.described.events if self.described else self.rows


class Substitute(NamedTuple):
    """Files that have, one after the other, the events of recorded ones, of which some are missing.

    `files`: of each the first `events` rows. `itself`: if it is one file with just these events,
    which the database does not know: it takes their place as it is. Otherwise they are put into a
    new one."""

    files: list[Small]
    old: list[Small]
    itself: Written | None


def find_substitutes(
    database: Database, warehouse: str, stream_id: int, missing: Sequence[str], found: Found,
    known: Known,
) -> list[Substitute]:  # fmt: skip
    """Return what can take the place of missing files of a stream, by what the footers and the
    clocks of rows say. No missing file is in two of them. `found`: what lies in the stream's
    folder; `known`: what the database knows of it."""
    recorded = database.snapshot(lambda c: sql.recorded(c, stream_id=stream_id, paths=[*missing]))
    segments = {file.segment_id for file in recorded}
    seen = {one.path: one for one in _look_at(warehouse, _others(found, known, segments))}
    unknown, wanted, replaced = set(unknown_in(found, known)), set(missing), set[str]()
    commits = _Commits(database, warehouse, stream_id)
    chosen: list[Substitute] = []
    # What a compaction wrote since, the file with the most events first.
    described = (one for one in seen.values() if one.described is not None)
    for one in sorted(described, key=lambda one: -one.events):
        old = _within(one, recorded)
        paths, events = {file.path for file in old}, sum(file.events for file in old)
        whole = events == one.events and one.path in unknown
        if one.events > one.rows and not whole:
            continue  # it is not clear which of its rows are wanted
        if not paths & wanted or paths & replaced:
            continue
        files = [_small(one, old[0], old[0].start_offset, events)]
        if commits.are_those_of(files):
            chosen.append(Substitute(files, old, _itself(one, old) if whole else None))
            replaced |= paths
    # What one that is missing was made of.
    for file in recorded:
        if file.path in wanted - replaced and (files := commits.chain(file, [*seen.values()])):
            one = seen[files[0].path]
            whole = len(files) == 1 and one.rows == file.events and one.path in unknown
            chosen.append(Substitute(files, [file], _itself(one, [file]) if whole else None))
    return chosen


def sparse_files(warehouse: str, found: Found, paths: Sequence[str]) -> list[str]:
    """Return which of some files of a stream lack events that were erased, as their footers say."""
    files = [(path, found.files[path]) for path in paths if _PLACE.fullmatch(path)]
    return [one.path for one in _look_at(warehouse, files) if one.events > one.rows]


def substitute(
    database: Database,
    warehouse: str,
    stream_id: int,
    chosen: Sequence[Substitute],
    check: Check | None,
) -> list[Substitute]:
    """Put files in the place of recorded ones, and return which: those whose events are the ones
    that were committed, as `check` finds. It is a compaction: one transaction replaces them all."""
    token = uuid.uuid4().hex
    number = database.transaction(lambda c: records.begin(c, stream_id, _LEASE, None, token))
    if number is None:  # the stream is gone
        return []
    system, base = filesystem(warehouse)
    folder = records.folder_of(stream_id, number)
    written: list[Written] = []
    done: list[Substitute] = []
    try:
        with database.keep_alive(
            lambda c: records.renew(c, stream_id, number, _LEASE), every=_LEASE / 3
        ):
            for i, one in enumerate(chosen):
                with suppress(Unreadable, InvariantViolation):
                    new = one.itself or put_in_one(system, base, folder, i, one.files, one.old)
                    if new is not None and check is not None and not new.erased:
                        check(stream_id, [new])
                    if new is not None:
                        written.append(new)
                        done.append(one)
        holes = [chunk for one in written if one.erased for chunk in _holes(system, base, one)]
        commit_once(database, lambda c: _swap(c, stream_id, number, written, holes))
    except BaseException as error:
        if not isinstance(error, Unavailable):
            with suppress(WeirError):
                database.transaction(lambda c: records.abort(c, stream_id, number))
        if isinstance(error, OSError):
            raise not_writable(warehouse, error) from error
        raise
    return done


def _holes(system: fs.FileSystem, base: str, new: Written) -> Iterator[Chunk]:
    """Yield the offsets of a file that have no row, by chunks."""
    with system.open_input_file(f"{base}/{new.path}") as source:
        there = pq.read_table(source, columns=[OFFSET])[OFFSET].to_numpy()
    first, events = new.old[0].start_offset, sum(file.events for file in new.old)
    gone = np.setdiff1d(np.arange(first, first + events, dtype=np.int64), there)
    yield from chunks_of(new.old[0].segment_id, gone)


def _swap(
    connection: Connection, stream_id: int, number: int, written: Sequence[Written],
    holes: Sequence[Chunk],
) -> None:  # fmt: skip
    """Put new files in the place of old ones. What was erased of these after the backup is recorded
    again, but for who asked for it, and the digests of what is left."""
    records.swap(connection, stream_id, number, written)
    sparse = [one for one in written if one.erased]
    if holes and (events := add_holes(connection, stream_id, holes)):  # 0: the answer was lost
        for annex in hung(ErasedAgain):
            annex.record(connection, stream_id, number, events, sparse)
        for forget in (sql.forget_digests, sql.forget_packed_digests):
            forget(
                connection, stream_id=stream_id, segments=[one.old[0].segment_id for one in sparse],
                firsts=[one.old[0].start_offset for one in sparse],
                pasts=[one.old[-1].start_offset + one.old[-1].events for one in sparse],
            )  # fmt: skip


def _others(found: Found, known: Known, segments: set[int]) -> list[tuple[str, int]]:
    """Return the files in the folders of some segments that are not recorded as data, and their
    sizes."""
    others = []
    for path, size in found.files.items():
        place = _PLACE.fullmatch(path)
        if place and int(place[3]) in segments and path not in known.files:
            others.append((path, size))
    return others


def _look_at(warehouse: str, files: Sequence[tuple[str, int]]) -> list[_Seen]:
    system, base = filesystem(warehouse)
    with ThreadPoolExecutor(_THREADS) as pool:
        seen = pool.map(lambda file: _look(system, base, *file), files)
        return [one for one in seen if one is not None]


def _look(system: fs.FileSystem, base: str, path: str, size: int) -> _Seen | None:
    """Return what a file says of itself; None if it is none of Weir's, or damaged."""
    place = _PLACE.fullmatch(path)
    assert place is not None
    try:
        with system.open_input_file(f"{base}/{path}") as source:
            footer, end_hash = read_footer(source, size)
    except _DAMAGED:
        return None
    if (ranks := ranks_of(footer)) is None:
        return None
    described = description_in(footer.metadata or {})
    segment_id = int(place[3])
    events = None if OFFSET in footer.schema.names else footer.num_rows
    if described and (described.segment_id != segment_id or events not in (None, described.events)):
        return None
    return _Seen(
        path, int(place[1]), int(place[2]), segment_id, size, footer.num_rows,
        *ranks, end_hash, described,
    )  # fmt: skip


def _within(one: _Seen, recorded: Iterable[Small]) -> list[Small]:
    """Return the recorded files whose events a file says that it has, from its first one on."""
    assert one.described is not None
    at, end = one.described.start_offset, one.described.start_offset + one.events
    old: list[Small] = []
    for file in recorded:
        if file.segment_id == one.segment_id and file.start_offset == at:
            if file.start_offset + file.events > end:
                break
            if file.schema_version != one.described.schema_version:
                break
            old.append(file)
            at += file.events
    return old


def _small(
    one: _Seen, old: Small, start: int, events: int | None = None, clock: int | None = None
) -> Small:
    """Return a file, or its first `events`, as the one that a compaction is to write again in the
    place of `old`."""
    number = None if clock is None else one.transaction
    return Small(
        old.segment_id, start, events or one.rows, one.bytes, old.schema_version, number, clock,
        one.path, one.events - one.rows,
    )  # fmt: skip


def _itself(one: _Seen, old: list[Small]) -> Written:
    erased = one.events - one.rows
    return Written(one.path, one.bytes, one.end_hash, one.first_seq, one.last_seq, old, erased)


class _Commits:
    """The commits of a stream, as recorded."""

    def __init__(self, database: Database, warehouse: str, stream_id: int) -> None:
        self._database, self._stream_id = database, stream_id
        self._system, self._base = filesystem(warehouse)

    def _of(self, segment_id: int, first: int, past: int) -> list[sql.RecordedCommit]:
        return self._database.snapshot(
            lambda c: sql.commits(
                c, stream_id=self._stream_id, segment=segment_id, first=first, past=past
            )
        )

    def are_those_of(self, files: Sequence[Small]) -> bool:
        """Return whether each row of files with the clocks of their rows has that of the commit at
        its offset."""
        for file in files:
            past = file.start_offset + file.events
            commits = self._of(file.segment_id, file.start_offset, past)
            wanted = np.repeat(
                np.array([c.clock for c in commits], np.int64),
                [min(c.past, past) - max(c.start_offset, file.start_offset) for c in commits],
            )
            try:
                with self._system.open_input_file(f"{self._base}/{file.path}") as source:
                    names = [CLOCK, OFFSET] if file.erased else [CLOCK]
                    found = pq.read_table(source, columns=names)
                clocks = found[CLOCK].to_numpy()
                if file.erased:
                    wanted = wanted[found[OFFSET].to_numpy() - file.start_offset]
            except (*_DAMAGED, KeyError, IndexError):
                return False
            if not np.array_equal(clocks[: file.events], wanted):
                return False
        return True

    def chain(self, missing: Small, seen: Sequence[_Seen]) -> list[Small]:
        """Return files that have, one after the other, the events of a missing one; [] if there are
        none."""
        segment_id, at = missing.segment_id, missing.start_offset
        past = at + missing.events
        described: dict[int, list[_Seen]] = defaultdict(list)
        attempts: dict[int, dict[int, list[_Seen]]] = defaultdict(lambda: defaultdict(list))
        for one in seen:
            if one.segment_id == segment_id and one.described is not None:
                described[one.described.start_offset].append(one)
            elif one.segment_id == segment_id:
                attempts[one.transaction][one.attempt].append(one)
        commits = {c.start_offset: c for c in self._of(segment_id, at, past)}
        chain: list[Small] = []
        while at < past:
            part: list[Small] = []
            for one in sorted(described[at], key=lambda one: -one.rows):
                part = [_small(one, missing, at)]
                if at + one.rows <= past and self.are_those_of(part):
                    break
                part = []
            if not part and at in commits:
                number = commits[at].transaction_number
                part = _of_commit(missing, commits[at], attempts[number])
            if not part:
                return []
            chain += part
            at += sum(file.events for file in part)
        return chain if at == past else []


def _of_commit(
    missing: Small, commit: sql.RecordedCommit, attempts: Mapping[int, Sequence[_Seen]]
) -> list[Small]:
    """Return the files of the attempt at an append that has as many rows as were committed."""
    for _, files in sorted(attempts.items(), reverse=True):
        if sum(file.rows for file in files) == commit.past - commit.start_offset:
            at, found = commit.start_offset, []
            for one in sorted(files, key=lambda one: one.first_seq):
                found.append(_small(one, missing, at, clock=commit.clock))
                at += one.rows
            return found
    return []
