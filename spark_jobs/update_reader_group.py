"""Change the configuration of a reader group."""

import sys
from typing import Any

from weir.errors import InvalidInput
from weir.model.amounts import parse_age
from weir.model.names import stream_name
from weir.operations import UpdateReaderGroup
from weir.operations.runner import Job, main
from weir.reader_groups.pins import Pin
from weir.reader_groups.update import update_reader_group


def run(job: Job, arguments: UpdateReaderGroup) -> dict[str, Any]:
    """Update one group."""
    given = {
        "on_gap": arguments.on_gap,
        "release": arguments.release,
        "max_outstanding": arguments.max_outstanding,
    }
    changes: dict[str, Any] = {k: v for k, v in given.items() if v not in ("unchanged", 0)}
    for name in ("subscriber", "aligned"):
        if (switch := getattr(arguments, name)) != "unchanged":
            changes[name] = switch == "yes"
    for name in ("time_out", "max_ahead"):
        if age := getattr(arguments, name):
            changes[name] = parse_age(age)
    if arguments.streams:
        changes["streams"] = [stream_name(stream) for stream in arguments.streams]
        changes["start"] = arguments.start
    if arguments.pins:
        pins = [] if arguments.pins == ["-"] else arguments.pins
        changes["pins"] = [Pin.parse(pin) for pin in pins]
    if not changes:
        raise InvalidInput("nothing_to_change", "no setting is given; fill in at least one.")
    if arguments.generation >= 0:
        changes["generation"] = arguments.generation
    return update_reader_group(
        job.database, arguments.reader_group, **changes, request_id=job.request_id
    )


if __name__ == "__main__":
    sys.exit(main("update_reader_group", run))
