"""Replay a scaling policy over the recorded history of a stream, and change nothing."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from weir.history.back_test import back_test
from weir.history.recorded import Recorded
from weir.history.reports import write_picture
from weir.model.names import stream_name
from weir.model.split_points import Load
from weir.operations import BackTest
from weir.operations.runner import Job, main


def run(job: Job, arguments: BackTest) -> dict[str, Any]:
    """Replay one policy; write the picture below the first output root."""
    stream = stream_name(arguments.stream)
    last = arguments.last_seconds
    found = back_test(
        job.database,
        stream,
        arguments.policy,
        since=None if last is None else datetime.now(UTC) - timedelta(seconds=last),
        find_loads=(lambda past: _loads(job, past)) if arguments.read_files else None,
    )
    for line in found.table():
        job.say(line)
    name = f"back-test {job.run}"
    picture = write_picture(job.settings, stream, name, found.picture())
    job.say(f"picture: {picture}")
    return found.report() | {"picture": picture}


def _loads(job: Job, past: Recorded) -> Sequence[Load]:
    from weir.spark.reads.split_points import find_loads

    if not any(past.commits.values()):
        return ()
    job.say("reading a sample of the stream's files")
    ranges = past.sampled_ranges()
    loads, failed = find_loads(job.spark, job.database, job.settings, ranges)
    for sentence in failed.values():
        job.say(f"positions are taken as evenly spread: {sentence}")
    return [load for some in loads.values() for load in some]


if __name__ == "__main__":
    sys.exit(main("back_test", run))
