"""Check the files of a compaction before they take the place of others."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from weir.annex.verification.files import Reader, Seen, look_at
from weir.annex.verification.recorded import Commit, File, Unit
from weir.annex.verification.stored import columns_of, commits_of
from weir.annex.verification.verify import wrong_digest
from weir.compaction.records import Written
from weir.compaction.run import THREADS, Check
from weir.errors import InvariantViolation
from weir.installation.opened import Installation
from weir.model.compaction import Small
from weir.model.digest import digest, signed
from weir.warehouse.filesystem import filesystem


def checking(app: Installation) -> Check:
    """Return what reads new files of a stream, and raises InvariantViolation if their events are
    not those that were committed, in their order."""

    def check(stream_id: int, written: Sequence[Written]) -> None:
        columns = app.database.transaction(partial(columns_of, stream_id=stream_id))
        if columns is None:
            return
        reader = Reader(*filesystem(app.settings.warehouse), columns)
        for new in written:
            file = _file(new)
            commits = app.database.snapshot(
                lambda c, f=file: commits_of(c, stream_id, f)  # type: ignore[misc]  # the loop's own
            )
            seen = look_at(reader, file, commits)
            unit = Unit([file], commits)
            if unit.digest is None and not seen.wrong:
                differs = _wrong_copy(reader, new, commits, seen)
            else:
                differs = wrong_digest(unit, [seen])
            if what := seen.wrong[0][1] if seen.wrong else differs:
                raise InvariantViolation(
                    "invariant_violated",
                    f"the file that was to take the place of {len(new.old)} others of stream "
                    f"{columns.stream}, from offset {file.start_offset:,} of its segment on, does "
                    f"not have what was committed ({what}), so they stay; "
                    "verify the stream: the view weir.damage says whether one of them is damaged.",
                )

    return check


def _wrong_copy(reader: Reader, new: Written, commits: Sequence[Commit], seen: Seen) -> str | None:
    """Return that a new file has not the events of the old ones, of which no digest is recorded;
    None if it has them, or if an old one is not there (a recovery looks for what replaces it)."""
    with ThreadPoolExecutor(THREADS) as pool:
        seen_of = partial(look_at, reader, commits=commits)
        old = list(pool.map(lambda file: seen_of(_old(file)), new.old))
    if seen.sums is None or any(one.sums is None for one in old):
        return None
    found = digest(seen.sums.items())
    before = sum(digest(one.sums.items()) for one in old if one.sums)
    if signed(found) == signed(before):
        return None
    return "they have another digest than the old files, and none was recorded"


def _old(file: Small) -> File:
    """Return what is to be known of an old file to read it."""
    return File(
        file.segment_id, file.start_offset, file.events, file.bytes, 0, (1 << 63) - 1,
        file.schema_version, file.path, None, None, file.clock is None, 0.0, 1.0, file.erased,
    )  # fmt: skip


def _file(new: Written) -> File:
    first = new.old[0]
    clocks = {old.clock for old in new.old}
    return File(
        first.segment_id, first.start_offset, sum(old.events for old in new.old), new.bytes,
        new.first_seq, new.last_seq, first.schema_version, new.path, new.end_hash, None,
        clocks != {first.clock} or first.clock is None, 0.0, 1.0,
        sum(old.erased for old in new.old) + new.erased,
    )  # fmt: skip
