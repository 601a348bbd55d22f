"""Change an adjunct store.

**Parameters.** What is left empty is not changed. The next build applies another value or delete
condition to the rows of the last version. Another key begins anew at the head of the stream, and
the report says since when the stream has events. Versions that exist keep what they are.

**On failure.** If anything is invalid, nothing is changed.
"""

from typing import cast

from weir.adjunct.stores import StoreUpdated
from weir.operations.action import STREAMS, Action, Job
from weir.operations.asked import bring
from weir.operations.runner import run_if_main
from weir.operations.store_forms import UpdateAdjunctStore


def run(job: Job, arguments: UpdateAdjunctStore) -> StoreUpdated:
    """Update one store. A changed definition is checked with the columns of the stream."""
    return cast(StoreUpdated, bring(job, arguments.asked))


def said(arguments: UpdateAdjunctStore, _report: StoreUpdated) -> str:
    """Say what was changed."""
    return f"adjunct store {arguments.adjunct_store} is changed: {', '.join(arguments.changes)}"


ACTION = Action(__file__, UpdateAdjunctStore, run, said, STREAMS, rehearsed=True)
run_if_main(ACTION, __name__)
