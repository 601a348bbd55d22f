"""Define an adjunct store.

**Parameters.** Its name, the stream of changes, and how a key and a value are made of an event; all
have defaults: the routing key of the stream, and all columns of the event. From this moment on the
store is a subscriber of its stream. `weir_adjunct` builds its first version within five minutes.

**On failure.** If anything is invalid, nothing is defined.
"""

from typing import cast

from weir.adjunct.stores import StoreDefined
from weir.operations.action import STREAMS, Action, Job
from weir.operations.asked import bring
from weir.operations.runner import run_if_main
from weir.operations.store_forms import DefineAdjunctStore


def run(job: Job, arguments: DefineAdjunctStore) -> StoreDefined:
    """Check the definition with the columns of the stream, then define the store."""
    return cast(StoreDefined, bring(job, arguments.asked))


def said(arguments: DefineAdjunctStore, _report: StoreDefined) -> str:
    """Say what was defined."""
    return f"adjunct store {arguments.adjunct_store} is defined; its first build fills it"


ACTION = Action(__file__, DefineAdjunctStore, run, said, STREAMS, rehearsed=True)
run_if_main(ACTION, __name__)
