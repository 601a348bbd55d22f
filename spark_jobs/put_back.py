"""Put rejected events back, after the function or what it needs was mended.

**Parameters.** The reader group whose consumer has rejected events (`on_error` = quarantine), its
function and its outputs; both may be empty if the consumer is declared. Each rejected event is put
back once.

**Rows that an append has rejected** never became events, so no consumer has read them: take them
from `<stream>.rejected` (`weir read shop/orders.rejected --where "source NOT LIKE 'group %'"`),
correct them, and append them.

**On failure.** If the function fails on an event again, the run stops and names it; nothing of that
batch is published.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from weir.errors import counted
from weir.model.names import FUNCTION_PATTERN
from weir.operations.action import DATA, Action, Job
from weir.operations.consumers import with_declared
from weir.operations.form import OUTPUT_PATTERN, argument, reader_group_argument
from weir.operations.runner import run_if_main

if TYPE_CHECKING:
    from weir.consumers.consumer import Consumed


@dataclass(frozen=True)
class PutBack:
    """Call the function of a consumer, after it was mended, with the events that it has rejected.
    Each of them is put back once. Rows that an append has rejected never became events: correct
    them, and append them again.
    """

    reader_group: str = reader_group_argument("The group whose consumer has rejected events.")
    function: str = argument(
        "Function", "module:function of a configured package. Empty: the declared one.", "",
        pattern=FUNCTION_PATTERN, maxLength=500,
    )  # fmt: skip
    outputs: list[str] = argument(
        "Outputs", "As when a group is processed. Empty: the declared ones.", [],
        items={"type": "string", "pattern": OUTPUT_PATTERN, "maxLength": 4_096}, maxItems=100,
    )  # fmt: skip
    parameters: dict[str, Any] = argument(
        "Parameters", "As when a group is processed. Empty: the declared ones.", {}
    )


def run(job: Job, _arguments: PutBack) -> "Consumed":
    """Call the function with the events that were rejected and not put back before."""
    from weir.consumers.outputs import Output
    from weir.spark.consumers.put_back import put_back

    arguments = job.database.transaction(lambda c: with_declared(c, job.given))
    return put_back(
        job.installation,
        arguments.reader_group,
        str(job.run),
        job.function(arguments.function),
        [Output.parse(output, job.settings.output_roots) for output in arguments.outputs],
        arguments.parameters,
    )


def said(arguments: PutBack, report: "Consumed") -> str:
    """Say how much was put back."""
    again = f", {report['rejected']:,} of them rejected again" if report["rejected"] else ""
    return f"{arguments.reader_group}: {counted(report['events'], 'event')} put back{again}"


ACTION = Action(__file__, PutBack, run, said, DATA, moves_data=True, uses_spark=True)
run_if_main(ACTION, __name__)
