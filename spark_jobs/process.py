"""Run a function over what a reader group has not read yet, exactly once."""

import sys
from typing import Any

from weir.arguments import Process
from weir.functions import load_function
from weir.job import Job, main


def run(job: Job, arguments: Process) -> dict[str, Any]:
    """Consume up to the tail as it is at the start."""
    from weir.spark.append import Appender
    from weir.spark.consume import Consumer, Output

    function = load_function(arguments.function, job.settings.function_packages)
    outputs = tuple(Output.parse(o, job.settings.output_roots) for o in arguments.outputs)
    appender = Appender(job.spark, job.database, job.settings, str(job.run), job.say)
    return Consumer(
        appender,
        arguments.reader_group,
        str(job.run),
        function,
        outputs,
        arguments.order,
        arguments.expected_readers,
    ).run()


if __name__ == "__main__":
    sys.exit(main("process", run))
