"""Append files to a stream, as one transaction."""

import sys
from dataclasses import fields
from typing import Any

from weir.model.names import stream_name
from weir.operations import Ingest
from weir.operations.runner import Job, main


def run(job: Job, arguments: Ingest) -> dict[str, Any]:
    """Find the files and append them."""
    from weir.spark.appends.appender import Appender
    from weir.spark.inputs.files import find_inputs
    from weir.spark.inputs.text_options import TextOptions

    name = stream_name(arguments.stream, reserved=False)
    how = TextOptions(**{one.name: getattr(arguments, one.name) for one in fields(TextOptions)})
    inputs = find_inputs(
        arguments.files, job.settings.input_roots, arguments.format, how, arguments.infer
    )
    size = sum(file.bytes for file in inputs.files)
    job.say(f"{len(inputs.files)} {inputs.format} files, {size:,} bytes, for {name}")
    appender = Appender(job.installation)
    again = job.request_id if arguments.allow_repeated_files else ""
    until = arguments.complete_until
    return appender.append_files(name, inputs, again=again, complete_until=until).report()


if __name__ == "__main__":
    sys.exit(main("ingest", run))
