"""Verify streams: compare their files with what was recorded, and record what is not so.

Nothing is changed in the warehouse or of the streams, unless a repair is asked for: it makes
garbage of files that nobody knows, and moves back files that were renamed.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import TypedDict

from weir.annex.verification import damage
from weir.annex.verification.damage import OF_CONTENTS, OF_FILES, OF_OFFSETS
from weir.annex.verification.files import Reader, Seen, look_at
from weir.annex.verification.footers import look_here, opened
from weir.annex.verification.holes import wrong_holes
from weir.annex.verification.kept import let_go
from weir.annex.verification.recorded import Columns, Damage, File, Unit
from weir.annex.verification.stored import BEGIN, columns_of, next_units
from weir.annex.verification.strangers import look_for_strangers
from weir.controller.locks import read_stream
from weir.controller.ownership import check_warehouse_ownership
from weir.controller.times import Span
from weir.errors import Incomplete, counted
from weir.installation.opened import Installation
from weir.model.clock import to_clock
from weir.model.digest import digest, signed
from weir.model.names import stream_name
from weir.queries.annex.verification import damage as damage_sql
from weir.queries.annex.verification import stored
from weir.warehouse.filesystem import filesystem

FILES = 5_000  # looked at between two statements
# Reads the contents of files: what was seen, of each.
Contents = Callable[[Columns, Sequence[Unit]], list[list[Seen]]]


class VerifyReport(TypedDict):
    """What was looked at, and how much damage of each kind there is."""

    streams: int
    files: int
    events: int
    bytes: int
    without_digest: int
    keys_not_checked: int
    damage: dict[str, int]
    repaired: int
    complete: bool


@dataclass
class Verified:
    """What was looked at, and how much is wrong."""

    files: int = 0
    events: int = 0
    bytes: int = 0
    streams: list[str] = field(default_factory=list)
    without_digest: int = 0  # commits of which no digest is recorded
    keys_not_checked: int = 0  # files in which the segments of the keys were not checked
    damage: Counter[str] = field(default_factory=Counter)  # by kind
    first: str = ""
    repaired: int = 0
    complete: bool = True

    def report(self) -> VerifyReport:
        """Return it as the report of a job."""
        return {
            "streams": len(self.streams), "files": self.files, "events": self.events,
            "bytes": self.bytes, "without_digest": self.without_digest,
            "keys_not_checked": self.keys_not_checked, "damage": dict(sorted(self.damage.items())),
            "repaired": self.repaired, "complete": self.complete,
        }  # fmt: skip

    @property
    def kinds(self) -> str:
        """How much there is of each kind of damage, for a sentence."""
        return ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.damage.items()))

    def count(self, found: Sequence[Damage]) -> None:
        """Count damage that was found and recorded."""
        self.damage.update(one.kind for one in found)
        if found and not self.first:
            self.first = f"file {found[0].path}: {found[0].what}"

    def error(self, report: Mapping[str, object] | None = None) -> Incomplete | None:
        """Return the error that something is wrong, with a report (None: its own); None if nothing
        is."""
        if not self.damage:
            return None
        return Incomplete(
            "damage_found",
            f"{counted(self.damage.total(), 'finding')} in {counted(self.files, 'file')} "
            f"({self.kinds}), such as {self.first}; the view weir.damage has all of them, and what "
            "to do.",
            report=report or self.report(),
            retryable=False,
        )


def verify(
    app: Installation,
    *,
    stream: str = "",
    span: Span | None = None,
    contents: Contents | None,
    most_bytes: int | None = None,
    again_after: float = 0.0,
    repair: bool = False,
) -> Verified:
    """Verify a stream, or all streams, the one first whose turn is longest ago; return what was
    looked at, and how much is wrong. What is wrong is recorded (`weir.damage`).

    `contents`: reads the contents of files and compares digests; None: only sizes and footers are
    looked at. `span`: only what was committed after one time and up to another. `most_bytes`: the
    most that is read; it begins where the last run with a maximum ended. `again_after`: leave
    out streams that were read to their end in the last so many seconds. `repair`: makes garbage of
    files that the database does not know, and moves back files that were renamed.

    Raises NotFound for a stream that does not exist, and InvariantViolation if the warehouse is not
    this database's or not there, or if the database was restored.
    """
    check_warehouse_ownership(app.database, app.settings.warehouse)
    if stream:
        row = app.database.transaction(lambda c: read_stream(c, stream_name(stream)))
        ids = [row.stream_id]
    else:
        ids = app.database.transaction(partial(damage_sql.in_turn, again_after=again_after))
    done = Verified()
    if repair:
        done.repaired += app.database.transaction(lambda c: let_go(c, ids[0] if stream else None))
    for stream_id in ids:
        left = None if most_bytes is None else most_bytes - done.bytes
        if left is not None and left <= 0:
            done.complete = False
            break
        _verify_stream(app, stream_id, span, contents, left, done)
        if done.complete and (stream or most_bytes is not None) and span is None:
            _look_for_strangers(app, stream_id, repair, done)
    if not stream and most_bytes is None and span is None:
        _look_for_strangers(app, None, repair, done)
    return done


def _look_for_strangers(
    app: Installation, stream_id: int | None, repair: bool, done: Verified
) -> None:
    found, repaired = look_for_strangers(app, stream_id, repair=repair)
    done.count(found)
    done.repaired += repaired


def _verify_stream(
    app: Installation,
    stream_id: int,
    span: Span | None,
    contents: Contents | None,
    most_bytes: int | None,
    done: Verified,
) -> None:
    """Verify a stream, from where the last run ended if there is a maximum."""
    columns = app.database.transaction(lambda c: columns_of(c, stream_id))
    if columns is None:
        return
    done.streams.append(columns.stream)
    after = BEGIN
    if most_bytes is not None:
        after = app.database.transaction(lambda c: damage.position(c, stream_id))
    if after == BEGIN and span is None:
        found = app.database.snapshot(lambda c: stored.wrong_offsets(c, stream_id=stream_id))
        _record(app, stream_id, found, None, OF_OFFSETS, done)
    begun, moves = done.bytes, contents is not None and span is None
    while True:
        units, last = app.database.snapshot(
            lambda c, a=after: next_units(c, stream_id, a, FILES)  # type: ignore[misc]  # the loop's own
        )
        if units:
            file = units[-1].files[-1]
            after = file.segment_id, file.start_offset
        if most_bytes is not None:
            units, cut = _within(units, most_bytes - (done.bytes - begun))
            if cut is not None:
                after, last = cut, False
        _verify_units(app, columns, _of_span(units, span), contents, done)
        if moves:
            app.database.transaction(
                lambda c, a=after, e=last: damage.move(c, stream_id, None if e else a)  # type: ignore[misc]  # the loop's own
            )
        if last:
            return
        if most_bytes is not None and done.bytes - begun >= most_bytes:
            done.complete = False
            return


def _within(units: list[Unit], most_bytes: int) -> tuple[list[Unit], tuple[int, int] | None]:
    """Return the first units with at most so many bytes, at least one, and the last file of these
    if there are more."""
    total = 0
    for i, unit in enumerate(units):
        if total >= most_bytes and i:
            file = units[i - 1].files[-1]
            return units[:i], (file.segment_id, file.start_offset)
        total += sum(file.bytes for file in unit.files)
    return units, None


def _of_span(units: list[Unit], span: Span | None) -> list[Unit]:
    """Return the units with commits within a span."""
    if span is None:
        return units
    low = -1 if span.since is None else to_clock(span.since)
    high = 1 << 63 if span.until is None else to_clock(span.until)
    return [u for u in units if any(low < commit.clock <= high for commit in u.commits)]


def _verify_units(
    app: Installation,
    columns: Columns,
    units: Sequence[Unit],
    contents: Contents | None,
    done: Verified,
) -> None:
    if not units:
        return
    seen = (contents or by_pyarrow(app, contents=False))(columns, units)
    found: list[Damage] = []
    hashes: list[tuple[int, int, str, int]] = []
    files = [file for unit in units for file in unit.files]
    for unit, of_unit in zip(units, seen, strict=True):
        wrong = [
            damage_of(file, *one) for file, of_file in zip(unit.files, of_unit, strict=True)
            for one in of_file.wrong
        ]  # fmt: skip
        if not wrong and (what := _wrong_commits(unit)):
            wrong.append(damage_of(unit.files[0], "commits", what))
        if not wrong and contents is not None and (what := wrong_digest(unit, of_unit)):
            wrong.append(damage_of(unit.files[0], "content", what))
        found += wrong
        if not wrong:
            hashes += [
                (file.segment_id, file.start_offset, file.path, one.file_hash)
                for file, one in zip(unit.files, of_unit, strict=True)
                if one.file_hash is not None and file.file_hash is None
            ]
        done.without_digest += sum(commit.digest is None for commit in unit.commits)
        if contents is not None:
            done.keys_not_checked += sum(not one.keys for one in of_unit if not one.wrong)
    if contents is not None:
        found += wrong_holes(app, columns.stream_id, files)
    if any(one.kind in ("missing", "unreadable") for one in found):
        # Not if the whole warehouse is away.
        check_warehouse_ownership(app.database, app.settings.warehouse)
    done.files += len(files)
    done.events += sum(file.events for file in files)
    done.bytes += sum(file.bytes for file in files)
    paths = [file.path for file in files]
    kinds = OF_FILES if contents is None else (*OF_FILES, *OF_CONTENTS)
    _record(app, columns.stream_id, found, paths, kinds, done)
    if hashes:
        app.database.transaction(lambda c: damage.record_hashes(c, columns.stream_id, hashes))


def _wrong_commits(unit: Unit) -> str | None:
    """Return what is wrong with the commits of a unit; None if nothing is."""
    for one, other in pairwise(unit.commits):
        if one.end != other.start_offset or one.clock >= other.clock:
            return (
                f"the time index has no order or a gap between offsets {one.start_offset:,} and "
                f"{other.start_offset:,}"
            )
    if not unit.commits or unit.commits[0].start_offset > unit.files[0].start_offset:
        return "the time index has no commit of its events"
    return None


def wrong_digest(unit: Unit, seen: Sequence[Seen]) -> str | None:
    """Return in what the contents of a unit differ from what was committed; None if in nothing, or
    if that is not known."""
    if unit.digest is None or any(one.sums is None for one in seen):
        return None
    found = sum(digest(one.sums.items()) for one in seen if one.sums is not None)
    if signed(found) == signed(unit.digest):
        return None
    more = f", with those of {counted(len(unit.files) - 1, 'more file')}," * (len(unit.files) > 1)
    return (
        f"its events{more} are not those that were committed: their digest is {signed(found)} "
        f"instead of {signed(unit.digest)}"
    )


def _record(
    app: Installation,
    stream_id: int,
    found: Sequence[Damage],
    looked_at: Sequence[str] | None,
    kinds: Iterable[str],
    done: Verified,
) -> None:
    kept = app.database.transaction(
        lambda c: damage.record(c, stream_id, found, looked_at=looked_at, kinds=kinds)
    )
    done.count(kept)


def damage_of(file: File, kind: str, what: str) -> Damage:
    """Return that something is wrong with a file."""
    return Damage(kind, file.path, what, file.segment_id, file.start_offset, file.events)


def by_pyarrow(app: Installation, *, contents: bool) -> Contents:
    """Return what looks at files with pyarrow in this process, and reads them if `contents`."""

    def look(columns: Columns, units: Sequence[Unit]) -> list[list[Seen]]:
        reader = Reader(*filesystem(app.settings.warehouse), columns)
        of = [(file, unit.commits) for unit in units for file in unit.files]
        seen: Iterator[Seen]
        if contents:
            with ThreadPoolExecutor(os.cpu_count() or 4) as pool:
                seen = iter(list(pool.map(lambda one: look_at(reader, *one), of)))
        else:
            files = [file.recorded for file, _ in of]
            seen = map(Seen, opened(look_here(app.settings.warehouse, files)))
        return [[next(seen) for _ in unit.files] for unit in units]

    return look
