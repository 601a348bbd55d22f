"""Split or merge segments of a stream by hand.

**Parameters.** The active segments to replace (see `SELECT * FROM weir.segments WHERE active`), and
the number of equal parts. Example: the segment `1.0` and 2 parts split it into two equal segments.

**On failure.** One transaction: everything or nothing. Appends that run at the same time lose
nothing.
"""

from dataclasses import dataclass

from weir.controller.scale import Scaled, scale
from weir.model.names import stream_name
from weir.model.scaling_policy import MOST_SEGMENTS
from weir.operations.action import STREAMS, Action, Job
from weir.operations.form import SEGMENT_PATTERN, argument, stream_argument
from weir.operations.runner import run_if_main


@dataclass(frozen=True)
class ScaleStream:
    """Seal active segments and create new ones over the same key ranges."""

    stream: str = stream_argument()
    segments: list[str] = argument(
        "Segments to replace",
        "Active segments, as number.epoch (see the view weir.segments): one to split it, "
        "neighbours to merge or divide them. Separate blocks of neighbours are scaled together.",
        items={"type": "string", "pattern": SEGMENT_PATTERN, "maxLength": 40}, minItems=1,
        maxItems=MOST_SEGMENTS,
    )  # fmt: skip
    parts: int = argument(
        "Equal parts",
        "The number of new segments of equal range that replace a segment, or neighbours; 1 merges "
        "them.",
        2,
        minimum=1,
        maximum=MOST_SEGMENTS,
    )
    reason: str = argument(
        "Reason", "Why you scale; the view weir.epoch_transition shows it.", "",
        maxLength=500,
        section="More",
    )  # fmt: skip


def run(job: Job, arguments: ScaleStream) -> Scaled:
    """Scale one stream."""
    return scale(
        job.database,
        stream_name(arguments.stream),
        seal=arguments.segments,
        parts=arguments.parts,
        reason=arguments.reason,
        request_id=job.request_id,
    )


def said(arguments: ScaleStream, report: Scaled) -> str:
    """Say which segments there are now."""
    sealed, created = (
        ", ".join(report["sealed"]),
        ", ".join(str(one[0]) for one in report["created"]),
    )
    return (
        f"stream {arguments.stream}: {sealed} sealed, {created} created (epoch {report['epoch']})"
    )


ACTION = Action(__file__, ScaleStream, run, said, STREAMS, rehearsed=True)
run_if_main(ACTION, __name__)
