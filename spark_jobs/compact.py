"""Put neighbouring small files of streams together.

**Parameters.** `streams`: which ones, all by default; `at_most` and `seconds`: how much to write.

Readers see nothing of it: events, offsets, clocks and their order stay what they are (semantics
12.5). `weir_upkeep` does the same by itself, where it is worth while. This run puts all neighbours
together that fit into one file. `weir.compactions` has what was done, `weir.small_files` what is
left. The old files are deleted after `compacted_grace`, so their space is needed twice until then.

**On failure.** What is done is kept, and the next run does the rest. If one stream fails, the run
continues with the others, names it, and fails at its end.
"""

from dataclasses import dataclass
from typing import TypedDict

from weir.compaction.records import Compacted
from weir.compaction.run import Budget, checks, compact, say
from weir.errors import counted
from weir.model.amounts import SIZE_PATTERN, parse_size
from weir.model.names import stream_name
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.form import argument, streams_argument
from weir.operations.runner import run_if_main

_NO_END = 10 * 366 * 86400.0  # seconds


@dataclass(frozen=True)
class Compact:
    """Put neighbouring small files of streams together, unseen by readers."""

    streams: list[str] = streams_argument(
        "Of these, as scope/stream. Empty: of all, those with the most small files first.",
        checked=True,
    )
    at_most: str = argument(
        "Bytes",
        "The most bytes of files to write anew, such as 10 GB. Empty: as many as there are.",
        "", pattern=SIZE_PATTERN, examples=["10 GB"],
    )  # fmt: skip
    seconds: int = argument(
        "Seconds", "After these, the run begins to write no further files. 0: it has no end.", 0,
        minimum=0, maximum=30 * 86400,
    )  # fmt: skip


class CompactReport(TypedDict):
    """What was done to the files of streams."""

    compacted: list[Compacted]


def run(job: Job, arguments: Compact) -> CompactReport:
    """Compact the given streams, or all."""
    names = [stream_name(stream) for stream in arguments.streams] or None
    budget = Budget(parse_size(arguments.at_most) or 1 << 62, arguments.seconds or _NO_END)
    compacted = compact(
        job.database, job.settings, budget, names, thorough=True, check=checks(job.installation),
        holder=job.request_id,
    )  # fmt: skip
    for one in compacted:
        job.say(say(one))
    return complete(CompactReport(compacted=compacted), compacted)


def said(_arguments: Compact, report: CompactReport) -> str:
    """Say how many files there are less."""
    done = [one for one in report["compacted"] if "files_after" in one]
    before, after = (
        sum(one["files_before"] for one in done),
        sum(one["files_after"] for one in done),
    )
    stay = sum(one.get("files_apart", 0) for one in report["compacted"])
    if not done and stay:
        return f"nothing can be compacted: {counted(stay, 'small file')} stay, as said above"
    if not done:
        return "nothing is to be compacted"
    return f"{counted(before, 'file')} of {counted(len(done), 'compaction')} are {after:,} now"


ACTION = Action(__file__, Compact, run, said, UPKEEP)
run_if_main(ACTION, __name__)
