"""Put back the events that a consumer has rejected, after it was mended."""

import sys
from typing import Any

from weir.operations import PutBack
from weir.operations.consumers import with_declared
from weir.operations.runner import Job, main


def run(job: Job, _arguments: PutBack) -> dict[str, Any]:
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


if __name__ == "__main__":
    sys.exit(main("put_back", run))
