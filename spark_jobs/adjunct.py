"""Build versions of the adjunct stores whose streams have moved.

A build copies the last version and replaces the keys that changed. It is published at once, for all
who join the store from then on. `weir.adjunct_stores` says how far
behind each store is, and why its last build failed. With `adjunct_stores`, the run builds these.
Versions that their store no longer keeps expire.

**On failure.** Everything done so far is kept, and the next run does the rest. If one store fails,
the run continues with the others, names it, and fails at its end.
"""

from dataclasses import dataclass
from typing import TypedDict

from weir.adjunct.builds import Built, stores_to_build
from weir.adjunct.expiry import Expired, expire_versions
from weir.adjunct.stores import read_store
from weir.errors import counted
from weir.model.names import ADJUNCT_STORE_PATTERN
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.form import argument
from weir.operations.runner import run_if_main


@dataclass(frozen=True)
class Adjunct:
    """Build versions of the adjunct stores whose streams have moved."""

    adjunct_stores: list[str] = argument(
        "Adjunct stores",
        "Build versions of these, as scope/name. Empty: of all whose stream or definition changed.",
        [], items={"type": "string", "pattern": ADJUNCT_STORE_PATTERN}, maxItems=20_000,
    )  # fmt: skip


class AdjunctReport(TypedDict):
    """Which versions of stores were built, and which expired."""

    built: list[Built]
    expired: list[Expired]


def run(job: Job, arguments: Adjunct) -> AdjunctReport:
    """Build each store by itself: one that fails does not stop the others. Spark is started only
    if there are events to read."""
    wanted = arguments.adjunct_stores
    for name in wanted:
        job.database.transaction(lambda c, n=name: read_store(c, n))  # type: ignore[misc]  # the loop's own
    expired = expire_versions(job.database)  # first, because a build may kill this process
    names, built_with = job.database.transaction(lambda c: stores_to_build(c, wanted or None))
    built: list[Built] = []
    if names or built_with:
        from weir.spark.adjuncts.build import build_stores, with_other_code

        names = with_other_code(job.database, job.settings, built_with) + names
        built = build_stores(job.installation, names)
    return complete(AdjunctReport(built=built, expired=expired), [*built, *expired])


def said(_arguments: Adjunct, report: AdjunctReport) -> str:
    """Say how many versions were built."""
    built = counted(len(report["built"]), "version")
    return f"{built} of adjunct stores built, {len(report['expired']):,} expired"


ACTION = Action(__file__, Adjunct, run, said, UPKEEP, uses_spark=True)
run_if_main(ACTION, __name__)
