"""Replay a scaling policy over the recorded history of a stream, and change nothing.

**Parameters.** The stream, and a policy to try: whether it counts events or bytes, the target rate
per second and segment, and the rest of it. Without a target rate, the stream's own policy. Example:
`nyc/flights`, event_rate, 50.

**Result.** The log and the report of the run have a table: segments, the largest rate of a segment
and the number of changes over time, recorded and with the policy, and each scale that it would have
made.

**On failure.** Nothing has changed; run it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, TypedDict, cast

from weir.errors import counted
from weir.model.amounts import AGE_PATTERN, parse_age
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.model.scaling_policy import MOST_SEGMENTS, SCALING, ScalingPolicy
from weir.model.split_points import Load
from weir.model.stream_configuration import Configuration
from weir.operations.action import STREAMS, Action, Job
from weir.operations.form import AGES, argument, stream_argument
from weir.operations.runner import run_if_main
from weir.operations.setting import settings_of
from weir.operations.stream_settings import MOST_RATE, SETTINGS

if TYPE_CHECKING:
    from weir.annex.back_test.recorded import Recorded


@dataclass(frozen=True)
class BackTest:
    """Replay a scaling policy over the recorded history of a stream, and change nothing."""

    stream: str = stream_argument(pattern=READABLE_STREAM_PATTERN)
    target_rate: int = argument(
        "Target rate",
        "Events or bytes per second and segment, of the policy to try. 0: the stream's own policy.",
        0, minimum=0, maximum=MOST_RATE,
    )  # fmt: skip
    scaling: str = argument(
        "Scaling", "What the target rate counts.", "event_rate", enum=list(SCALING[1:])
    )
    scale_factor: int = argument(
        "Scale factor", "The most segments into which one is split at once.", 2, minimum=2,
        maximum=MOST_SEGMENTS,
        section="More",
    )  # fmt: skip
    last: str = argument(
        "Replay the last",
        "How much of the history to replay, such as 7 d. Empty: all of it.",
        "", pattern=AGE_PATTERN,
        examples=AGES,
    )  # fmt: skip
    min_segments: int = argument(
        "Minimum number of segments",
        "No merge leaves fewer.",
        1,
        minimum=1,
        maximum=MOST_SEGMENTS,
        section="More",
    )
    max_segments: str = SETTINGS["max_segments"].created("More")
    scale_cooldown: str = SETTINGS["scale_cooldown"].created("More")
    read_files: bool = argument(
        "Read the stream's files",
        "Learn from a sample of the files where within the segments the events lie. Off: take them "
        "as evenly spread.",
        True,
        section="More",
    )

    @property
    def policy(self) -> ScalingPolicy | None:
        """The policy to try; None for the stream's own."""
        if not self.target_rate:
            return None
        given = settings_of(self, Configuration)
        return Configuration("").changed(given).scaling_policy

    @property
    def last_seconds(self) -> int | None:
        """How many seconds to replay; None for the whole history."""
        return parse_age(self.last)


class BackTestReport(TypedDict):
    """What a policy would have done: the first of its `scales`, how many others there are, and what
    was recorded in the same time. `with the policy` has the sums, as `recorded` has them."""

    stream: str
    policy: dict[str, object]
    since: str
    until: str
    positions: str
    recorded: dict[str, object]
    hot_keys: list[dict[str, object]]
    scales: list[dict[str, object]]
    scales_not_listed: int


def run(job: Job, arguments: BackTest) -> BackTestReport:
    """Replay one policy, and say what it would have made."""
    from weir.annex.back_test.back_test import back_test

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
    return cast(BackTestReport, found.report())


def _loads(job: Job, past: "Recorded") -> Sequence[Load]:
    from weir.spark.reads.split_points import find_loads

    if not any(past.commits.values()):
        return ()
    job.say("reading a sample of the stream's files")
    ranges = past.sampled_ranges()
    loads, failed = find_loads(job.spark, job.database, job.settings, ranges)
    for sentence in failed.values():
        job.say(f"positions are taken as evenly spread: {sentence}")
    return [load for some in loads.values() for load in some]


def said(arguments: BackTest, report: BackTestReport) -> str:
    """Say how often the policy would have scaled."""
    times = counted(len(report["scales"]) + report["scales_not_listed"], "time")
    return f"the policy would have scaled stream {arguments.stream} {times}"


ACTION = Action(__file__, BackTest, run, said, STREAMS, uses_spark=True)
run_if_main(ACTION, __name__)
