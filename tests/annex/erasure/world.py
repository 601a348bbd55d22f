"""A stream of real files from which events are erased at random, beside all else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tests.compaction.world import World
from weir.annex.erasure.records import Asked
from weir.annex.erasure.run import erase
from weir.annex.verification.new_files import checking
from weir.database.connection import Database
from weir.installation.opened import Installation
from weir.programs.opening import shared
from weir.queries.annex.erasure.records import Erased

ASKED = Asked("a test", "the right to be forgotten", {})


@dataclass
class Erasing(World):
    """`gone`: the numbers of the events that were erased."""

    gone: set[int] = field(default_factory=set)

    def compact(self, **how: Any) -> Sequence[Mapping[str, Any]]:
        """Put files together as upkeep does, which reads the new ones first."""
        app = Installation(self.settings, self.lane.database)
        return super().compact(check=checking(app), **how)

    def numbered(self) -> dict[int, tuple[int, int]]:
        """Return the place of each event by its number."""
        found = shared(self.settings).read(str(self.lane.name))
        columns = (found[name].to_pylist() for name in ("n", "_segment", "_offset"))
        return {n: (segment, offset) for n, segment, offset in zip(*columns, strict=True)}

    def erase(self, *keys: str) -> Erased:
        """Erase the events of some keys."""
        erased, gone = self.erasing(self.lane.database, *keys)
        self.gone |= gone
        return erased

    def erasing(self, database: Database, *keys: str) -> tuple[Erased, set[int]]:
        """Erase the events of some keys; return also their numbers."""
        gone: set[int] = set()

        def find() -> Mapping[int, npt.NDArray[np.int64]]:
            found = shared(self.settings).read(str(self.lane.name))
            found = found.filter(pc.is_in(found["key"], value_set=pa.array(keys, pa.string())))
            gone.update(found["n"].to_pylist())
            segments = found["_segment"].to_numpy()
            return {
                int(segment): np.sort(found["_offset"].to_numpy()[segments == segment])
                for segment in np.unique(segments)
            }

        return erase(database, self.settings, self.lane.name, ASKED, find), gone

    def without_gone(self, answer: Any) -> Any:
        """Return an answer of before without the events that were erased since; of batches only
        the bounds, as they have fewer events."""
        if isinstance(answer, list) and answer and isinstance(answer[0], tuple):
            return [bounds for _events, bounds in answer]
        if not isinstance(answer, list) or not answer or not isinstance(answer[0], dict):
            return answer
        return [row for row in answer if row["n"] not in self.gone]
