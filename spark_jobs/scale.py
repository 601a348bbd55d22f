"""Scale the streams whose segments no longer fit their load, by their policies."""

import sys
from collections.abc import Sequence
from typing import Any

from weir.model.names import stream_name
from weir.model.split_points import Found, HotSegment
from weir.operations import Scale
from weir.operations.runner import Job, complete, main
from weir.scaling.run import scale_by_load


def run(job: Job, arguments: Scale) -> dict[str, Any]:
    """Scale each stream in a transaction of its own. Spark is started only if a segment is hot."""

    def find_points(hot: Sequence[HotSegment]) -> Found:
        from weir.spark.reads.split_points import find_split_points

        job.say(f"looking at the keys of {len(hot)} hot segments")
        return find_split_points(job.spark, job.database, job.settings, hot)

    named = [stream_name(stream) for stream in arguments.streams]
    # A dry run is asked for by a person, who wants an answer though nothing has changed.
    names = named if named or arguments.dry_run else None
    decisions = scale_by_load(
        job.database, find_points, names=names, dry_run=arguments.dry_run, request_id=job.request_id
    )
    for decision in decisions:
        job.say(f"{decision['stream']}: {decision.get('error') or decision['reason']}")
    return complete({"decisions": decisions}, decisions)


if __name__ == "__main__":
    sys.exit(main("scale", run))
