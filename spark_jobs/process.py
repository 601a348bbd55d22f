"""Call a function with what a reader group has not read yet, exactly once."""

import sys
from typing import Any

from weir.consumers.consumer import Consumer
from weir.consumers.outputs import Output
from weir.model.amounts import parse_size
from weir.operations import Process
from weir.operations.consumers import with_declared
from weir.operations.engines import engine_of
from weir.operations.runner import Job, main
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.groups.lifecycle import end_of_group


def run(job: Job, _arguments: Process) -> dict[str, Any]:
    """Consume up to the tail as it is at the start. Log that the group has reached its end, if it
    has."""
    arguments = job.database.transaction(lambda c: with_declared(c, job.given))
    function = job.function(arguments.function)
    manager = arguments.manager.strip()
    outputs = tuple(Output.parse(o, job.settings.output_roots) for o in arguments.outputs)
    engine, in_memory = engine_of(job.installation, arguments.engine)
    if not in_memory:
        from weir.spark.base.progress import wait_for_cores

        # Wait before this reader joins: the group's other readers keep their cores until all of
        # them have ended.
        wait_for_cores(job.spark, job.say)
    consumer = Consumer(
        job.installation,
        engine,
        arguments.reader_group,
        str(job.run),
        function,
        outputs,
        Reading.of(
            job.settings,
            in_memory=in_memory,
            order=arguments.order,
            expected_readers=arguments.readers,
            label=arguments.label or (str(job.run.map_index) if job.run.map_index >= 0 else ""),
            batch_events=arguments.batch_events,
            batch_bytes=parse_size(arguments.batch_bytes) or 0,
            batch_files=arguments.batch_files,
            adjuncts=arguments.adjuncts,
            manager=job.function(manager) if manager else None,
        ),
        arguments.on_error,
        arguments.parameters,
        arguments.retries,
    )
    report = consumer.run()
    group = arguments.reader_group
    if end := job.database.transaction(
        lambda c: end_of_group(c, group, consumer.binding(c).not_delivered)
    ):
        job.say(end)
        report["end"] = end
    return report


if __name__ == "__main__":
    sys.exit(main("process", run))
