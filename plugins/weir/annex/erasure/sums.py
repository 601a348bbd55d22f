"""The digests of what is erased, so that those of the rest are known without reading it."""

import threading
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weir.annex.verification.files import hashed_columns
from weir.annex.verification.recorded import Columns
from weir.kernel.row_hash import row_hashes
from weir.model.compaction import Small
from weir.model.digest import digest, signed
from weir.model.schema import CLOCK


class Sums:
    """The sums of the hashes of rows, by segment and clock. Several threads may add to them."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._lock = threading.Lock()
        self._of: dict[tuple[int, int], int] = defaultdict(int)

    def add(self, file: Small, rows: pa.Table) -> None:
        """Add rows of a file, each with its clock."""
        names = hashed_columns(rows.column_names, self._columns)
        for batch in rows.combine_chunks().to_batches():
            hashes, clocks = row_hashes(batch, names), batch[CLOCK].to_numpy()
            begins = np.flatnonzero(np.diff(clocks, prepend=clocks[0] - 1))
            found = zip(clocks[begins], np.add.reduceat(hashes, begins), strict=True)
            with self._lock:
                for clock, total in found:
                    self._of[file.segment_id, int(clock)] += int(total)

    def digests(self) -> list[tuple[int, int, int]]:
        """Return the digests of the events that were added: (segment id, clock, digest)."""
        return [
            (segment_id, clock, digest([(clock, total)]))
            for (segment_id, clock), total in sorted(self._of.items())
        ]


def less(one: int, other: int) -> int:
    """Return the digest of what is left of events when others are gone."""
    return signed(one - other)


def total(digests: Sequence[int | None]) -> int | None:
    """Return the digest of all of several parts; None if that of one is not known."""
    known = [one for one in digests if one is not None]
    return signed(sum(known)) if len(known) == len(digests) else None
