"""Scale the streams whose segments no longer fit their load.

For streams with scaling by `event_rate` or `byte_rate`. The run measures how much each segment gets
per second, splits the hot ones so that the new segments get equal loads, and merges cold
neighbours. `weir.scale_decisions` has each decision with its reason, `weir.segment_rates` the
rates, `weir.hot_keys` the routing keys that alone have too much. With `dry_run`, the run only says
what it would do.

**On failure.** Everything done so far is kept, and the next run does the rest. If one stream fails,
the run continues with the others, names it, and fails at its end.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from weir.errors import counted
from weir.model.names import stream_name
from weir.model.split_points import Found, HotSegment
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.form import argument, streams_argument
from weir.operations.runner import run_if_main
from weir.scaling.run import ByLoad, scale_by_load


@dataclass(frozen=True)
class Scale:
    """Scale the streams whose segments no longer fit their load, by their policies."""

    dry_run: bool = argument(
        "Dry run", "Only say what the run would do, for the given streams or all.", False
    )
    streams: list[str] = streams_argument(
        "Decide about these, as scope/stream. Empty: about all that scale by load and have moved."
    )


class ScaleReport(TypedDict):
    """What was decided about streams."""

    decisions: list[ByLoad]


def run(job: Job, arguments: Scale) -> ScaleReport:
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
    return complete(ScaleReport(decisions=decisions), decisions)


def said(arguments: Scale, report: ScaleReport) -> str:
    """Say how many streams were scaled."""
    scaled = [one for one in report["decisions"] if one["action"] != "none"]
    done = "would be scaled" if arguments.dry_run else "scaled"
    return f"{counted(len(scaled), 'stream')} {done}, of {len(report['decisions']):,} looked at"


ACTION = Action(__file__, Scale, run, said, UPKEEP, uses_spark=True)
run_if_main(ACTION, __name__)
