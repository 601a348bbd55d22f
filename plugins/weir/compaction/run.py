"""One run of compaction: streams with the most small files first, until the budget is used up."""

import logging
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import count

from weir.compaction import records
from weir.compaction.records import Compacted, Found, Swapped, Written
from weir.compaction.rewrite import Unreadable, rewrite
from weir.controller.absent_files import why_unread
from weir.controller.locks import read_stream
from weir.controller.ownership import check_warehouse_ownership
from weir.database.connection import Database
from weir.errors import Truncated, Unavailable, WeirError, counted
from weir.installation.opened import Installation
from weir.model.compaction import Small, groups_of
from weir.model.names import StreamName
from weir.seams import hung
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem, not_writable
from weir.warehouse.marker import check_unused

AT_ONCE = 1 << 30  # bytes that are written before they take the place of others
MOST_TASKS = 10_000  # files of a compaction, each in a folder of its own
THREADS = max(1, min(4, os.cpu_count() or 1))  # that write files at the same time

# Reads new files of a stream before they take the place of the old ones, and raises
# InvariantViolation if they differ.
Check = Callable[[int, Sequence[Written]], None]

log = logging.getLogger("weir.compaction")


@dataclass(frozen=True)
class NewFiles:
    """A seam: `checking` returns what looks at new files before they are committed."""

    checking: Callable[[Installation], Check]


def checks(app: Installation) -> Check:
    """Return what does all checks of annexes."""
    every = [one.checking(app) for one in hung(NewFiles)]

    def check(stream_id: int, written: Sequence[Written]) -> None:
        for one in every:
            one(stream_id, written)

    return check


@dataclass(frozen=True)
class Budget:
    """The most that a run writes again: bytes of old files, and seconds after which it begins no
    further files. Its first files may exceed it."""

    bytes: int
    seconds: float


def compact(
    database: Database,
    settings: Settings,
    budget: Budget,
    names: Sequence[StreamName] | None = None,
    *,
    thorough: bool = False,
    check: Check | None = None,
    holder: str | None = None,
) -> list[Compacted]:
    """Put neighbouring small files of streams together, of the stream with the most first.

    `names`: these streams; None: all. `thorough`: all neighbours that fit together, and not only
    where it is worth while (docs/decisions/0071). `check`: looks at new files. `holder`: the
    request that this is a try of; it takes over what another try has begun.

    Later runs leave a stream whose small files can't be put together out until something is
    committed there (`thorough` ones do not). A stream that fails does not stop the others. Raises
    NotFound for a stream in `names` that does not exist, InvariantViolation if the warehouse is
    another database's.
    """
    check_warehouse_ownership(database, settings.warehouse)
    reports = records.expire(database)
    for name in names or ():
        database.transaction(partial(read_stream, name=name))
    found = database.snapshot(
        lambda c: records.find_small_files(
            c, names, settings.file_bytes, thorough=thorough, holder=holder
        )
    )
    until = time.monotonic() + budget.seconds
    run = _Run(database, settings, budget.bytes, until, check, holder)
    apart: list[str] = []
    for one in found:
        groups = groups_of(one.files, settings.file_bytes, thorough=thorough)
        what = f"stream {one.stream}"
        try:
            done, failed = database.one_of_many(what, partial(run.stream, one, groups))
        except Unavailable as error:  # the warehouse takes no files
            if error.code == "database_unavailable":
                raise
            reports.append({"stream": one.stream, "error": str(error)})
            break
        if failed:
            reports.append({"stream": one.stream, "error": failed})
        elif done is None and run.apart:
            apart.append(one.stream)
        elif done is not None:
            reports.append(done.report(one.stream))
        if run.used_up:
            break
    if thorough or apart:
        asked = [str(name) for name in names or ()] or None if thorough else apart
        said = {one["stream"] for one in reports}
        stay = database.transaction(lambda c: records.files_apart(c, asked))
        reports += [one for one in stay if one["stream"] not in said]
    return reports


class _Run:
    def __init__(
        self,
        database: Database,
        settings: Settings,
        most: int,
        until: float,
        check: Check | None,
        holder: str | None,
    ) -> None:
        self._database, self._settings, self._check = database, settings, check
        self._holder = holder
        self._left, self._until = most, until
        self.apart = False  # the files of the last stream can't be put together
        self._looked = True  # at all of them, and wrote none

    @property
    def used_up(self) -> bool:
        return self._left <= 0 or time.monotonic() >= self._until

    def stream(self, found: Found, groups: Sequence[Sequence[Small]]) -> Swapped | None:
        """Compact the groups of a stream as far as the budget goes. Returns what was swapped; None
        if nothing was."""
        swapped: list[Swapped] = []
        seen = number = 0
        self.apart, self._looked = False, True
        for part in self._parts(groups):
            if (begun := self._begun(found)) is None:
                break
            number = begun
            if (done := self._compact(found, number, part)) is None:
                break
            self._left -= done.bytes_before
            swapped.append(done)
            seen += len(part)
        if not any(one.files_before for one in swapped):
            if seen and seen == len(groups) and self._looked:
                self._database.transaction(lambda c: records.keep_apart(c, found.stream_id, number))
                self.apart = True
            return None
        return Swapped(*(sum(values) for values in zip(*swapped, strict=True)))

    def _parts(self, groups: Sequence[Sequence[Small]]) -> Iterator[list[Sequence[Small]]]:
        """Yield as many groups as are written at once, while the budget lasts."""
        part: list[Sequence[Small]] = []
        size = files = 0
        for group in groups:
            if self.used_up or size >= self._left:
                break
            bytes_ = sum(file.bytes for file in group)
            if part and (size + bytes_ > AT_ONCE or files + len(group) > MOST_TASKS):
                yield part
                part, size, files = [], 0, 0
                if self.used_up:
                    return
            part.append(group)
            size, files = size + bytes_, files + len(group)
        if part:
            yield part

    def _begun(self, found: Found) -> int | None:
        """Begin a compaction, and return its number; None if another one is at work, or if the
        stream is gone."""
        lease, token = self._settings.transaction_lease, uuid.uuid4().hex
        return self._database.transaction(
            lambda c: records.begin(c, found.stream_id, lease, self._holder, token)
        )

    def _compact(
        self, found: Found, number: int, groups: Sequence[Sequence[Small]]
    ) -> Swapped | None:
        """Write the files of some groups and swap them. Returns None if the stream is gone."""
        database, lease = self._database, self._settings.transaction_lease
        stream_id = found.stream_id
        try:
            with database.keep_alive(
                lambda c: records.renew(c, stream_id, number, lease), every=lease / 3
            ):
                written = self._write(records.folder_of(stream_id, number), groups)
                self._looked = self._looked and not written
                if self._check is not None:
                    self._check(stream_id, written)
                return database.transaction(lambda c: records.swap(c, stream_id, number, written))
        except BaseException as error:  # also an exit or an interrupt: nobody else would abort it
            if not isinstance(error, Unavailable):
                self._abort(stream_id, number)
            raise

    def _abort(self, stream_id: int, number: int) -> None:
        """Abort a compaction as far as possible now; the caller has an error of its own."""
        try:
            self._database.transaction(lambda c: records.abort(c, stream_id, number))
        except WeirError as error:
            log.info("compaction %s of stream %s is not aborted, and expires: %s", number,
                     stream_id, error)  # fmt: skip

    def _write(self, folder: str, groups: Sequence[Sequence[Small]]) -> list[Written]:
        """Write the files of some groups, several at the same time. Leaves out a group of which an
        old file was deleted meanwhile, and those that the time does not suffice for."""
        warehouse = self._settings.warehouse
        check_unused(warehouse, folder)
        system, base = filesystem(warehouse)
        tasks = count()  # without gaps: the plans of reads have an entry for each

        def write(i: int) -> list[Written]:
            if i and time.monotonic() >= self._until:
                self._looked = False
                return []
            try:
                return rewrite(system, base, folder, tasks, groups[i])
            except Unreadable as error:
                why = why_unread(self._database, warehouse, error.file.path, error.reason)
                if isinstance(why, Truncated):
                    self._looked = False
                    return []
                raise why from error
            except OSError as error:
                raise not_writable(warehouse, error) from error

        with ThreadPoolExecutor(THREADS) as pool:
            return [one for some in pool.map(write, range(len(groups))) for one in some]


def say(one: Compacted) -> str:
    """Return what was done to a stream, as a line."""
    if "error" in one:
        return f"{one['stream']}: {one['error']}"
    if "files_apart" in one:
        files = counted(one["files_apart"], "small file")
        return f"{one['stream']}: {files} stay, because {one['why']}"
    return (
        f"{one['stream']}: {one['files_before']:,} files with {one['events']:,} events are now "
        f"{one['files_after']:,}; {one['bytes_before']:,} bytes are {one['bytes_after']:,}"
    )
