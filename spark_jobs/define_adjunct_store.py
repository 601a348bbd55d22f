"""Define an adjunct store.

**Parameters.** Its name, the stream of changes, and how a key and a value are made of an event; all
have defaults: the routing key of the stream, and all columns of the event. From this moment on the
store is a subscriber of its stream. `weir_adjunct` builds its first version within five minutes.

**On failure.** If anything is invalid, nothing is defined.
"""

from typing import Any

from weir.adjunct.stores import define_store
from weir.model.amounts import parse_age
from weir.model.names import stream_name
from weir.operations.action import STREAMS, Action, Job
from weir.operations.runner import main
from weir.operations.store_forms import DefineAdjunctStore


def run(job: Job, arguments: DefineAdjunctStore) -> dict[str, Any]:
    """Check the definition with the columns of the stream, then define the store."""
    from weir.consumers.store_check import check_definition

    stream, definition = stream_name(arguments.stream), arguments.definition
    configuration = arguments.configuration
    check_definition(job.database, job.settings, arguments.adjunct_store, stream, definition)
    made = define_store(
        job.database, arguments.adjunct_store, stream, configuration, definition,
        time_out=parse_age(arguments.time_out), request_id=job.request_id,
    )  # fmt: skip
    job.say_all([*made["missing"], *made["deletes"]])
    return made


def said(arguments: DefineAdjunctStore, _report: dict[str, Any]) -> str:
    """Say what was defined."""
    return f"adjunct store {arguments.adjunct_store} is defined; its first build fills it"


ACTION = Action(__file__, DefineAdjunctStore, run, said, STREAMS, rehearsed=True)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
