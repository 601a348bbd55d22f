"""Build versions of the adjunct stores whose streams have moved, and let old versions expire."""

import sys
from typing import Any

from weir.adjunct.builds import stores_to_build
from weir.adjunct.expiry import expire_versions
from weir.adjunct.stores import read_store
from weir.operations import Adjunct
from weir.operations.runner import Job, complete, main


def run(job: Job, arguments: Adjunct) -> dict[str, Any]:
    """Build each store by itself: one that fails does not stop the others. Spark is started only
    if there are events to read."""
    wanted = arguments.adjunct_stores
    for name in wanted:
        job.database.transaction(lambda c, n=name: read_store(c, n))  # type: ignore[misc]  # the loop's own
    expired = expire_versions(job.database)  # first, because a build may kill this process
    names, built_with = job.database.transaction(lambda c: stores_to_build(c, wanted or None))
    built = []
    if names or built_with:
        from weir.spark.adjuncts.build import build_stores, with_other_code

        names = with_other_code(job.database, job.settings, built_with) + names
        built = build_stores(job.installation, names)
    return complete({"built": built, "expired": expired}, [*built, *expired])


if __name__ == "__main__":
    sys.exit(main("adjunct", run))
