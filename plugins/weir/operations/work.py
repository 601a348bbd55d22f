"""Find out which jobs with a schedule have something to do, before anything is started for them
(docs/decisions/0101). How each finds its work is a function of sql/functions/work.sql, which the
job asks, too."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping

from weir.database.connection import Database
from weir.queries.operations import work as sql
from weir.settings import Settings

# What of the settings says whether there is something to do.
ASKED = (
    "grace_period", "compacted_grace", "transaction_max", "transaction_lease", "reader_lease",
    "pack_after", "file_bytes", "compact_bytes", "compact_time",
)  # fmt: skip


def patience_of(settings: Settings) -> dict[str, float]:
    """Return what of the settings `work_of` needs, by name."""
    return {name: getattr(settings, name) for name in ASKED}


def work_of(
    database: Database, jobs: Iterable[str], patience: Mapping[str, float]
) -> dict[str, list[str]]:
    """Return what some jobs may have to do, by those that have anything, in one statement. In
    doubt, they have. `patience`: what `patience_of` returns for the installation."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    asked = json.dumps({name: patience[name] for name in ASKED})
    for row in database.transaction(lambda c: sql.work(c, jobs=list(jobs), settings=asked)):
        found[row.job].append(row.what)
    return dict(found)
