"""Call a function with what a reader group has not read yet, exactly once.

**Parameters.** The group, `module:function` of a configured package, where the result goes, and how
many tasks share the work. They read batch after batch, up to the tail as it is at the start.

**On failure.** Results and positions are published together. If a task fails or is killed, another
reader takes over its open batch at once, or the next try or run does.
"""

from typing import TYPE_CHECKING

from weir.consumers.outputs import Output
from weir.errors import counted
from weir.model.amounts import parse_size
from weir.operations.action import DATA, Action, Job
from weir.operations.consumers import AskedConsumer, Process, with_declared
from weir.operations.runner import run_if_main
from weir.reader_groups.groups.lifecycle import end_of_group

if TYPE_CHECKING:
    from weir.consumers.consumer import Consumed


def check(job: Job, _arguments: Process) -> None:
    """Check that the function is there, and that its outputs are what they can be."""
    from weir.consumers.user_functions import find_function

    arguments = job.database.transaction(lambda c: with_declared(c, job.given))
    settings = job.settings
    for name in (arguments.function, arguments.manager.strip()):
        if name:
            find_function(name, settings.function_packages, settings.function_path)
    given = {"function": arguments.function, "outputs": arguments.outputs}
    AskedConsumer(arguments.reader_group, given, {}, ()).check(job.database, settings)


def run(job: Job, _arguments: Process) -> "Consumed":
    """Consume up to the tail as it is at the start. Log that the group has reached its end, if it
    has."""
    # Who only looks at forms does not wait for what reads.
    from weir.consumers.consumer import Consumer
    from weir.operations.engines import engine_of
    from weir.reader_groups.batches.reading import Reading

    arguments = job.database.transaction(lambda c: with_declared(c, job.given))
    function = job.function(arguments.function)
    manager = arguments.manager.strip()
    outputs = tuple(Output.parse(o, job.settings.output_roots) for o in arguments.outputs)
    engine, in_memory = engine_of(job.installation, arguments.engine)
    if not in_memory:
        from weir.spark.base.progress import wait_for_cores
        from weir.spark.base.python_workers import send_by_value

        send_by_value(job.own.values())

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


def said(arguments: Process, report: "Consumed") -> str:
    """Say how much was read."""
    batches, number = counted(report["events"], "event"), len(report["batches"])
    rejected = f", {report['rejected']:,} rejected" if report["rejected"] else ""
    in_ = f"{number:,} batch{'' if number == 1 else 'es'}"
    end = f"; {report['end']}" if "end" in report else ""
    return f"{arguments.reader_group}: {batches} in {in_}{rejected}{end}"


ACTION = Action(__file__, Process, run, said, DATA, moves_data=True, uses_spark=True, check=check)
run_if_main(ACTION, __name__)
