"""Append files without a JVM: read their rows into this process, and stage them as a table."""

from itertools import chain

import pyarrow as pa

from weir.arrow.rejected import staged_rejected
from weir.errors import InvalidInput
from weir.front_ends import give
from weir.inputs.files import Inputs
from weir.inputs.renamed_columns import or_renamed
from weir.inputs.rows import MOST_BYTES
from weir.inputs.values import here, values_of
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.stage import Layout
from weir.kernel.writer import write_batches
from weir.warehouse.filesystem import not_writable


def stage_files(app: Installation, inputs: Inputs, attempts: list[Attempt]) -> list[Staged]:
    """Write the rows of files for the one open attempt. Return the appends to commit together.

    If there are rejected rows, the attempt that has them is added to the open ones. Raises
    InvalidInput (`needs_spark`) for files that are too large for one process.
    """
    [attempt] = attempts
    if (size := sum(file.bytes for file in inputs.files)) > MOST_BYTES:
        raise InvalidInput(
            "needs_spark",
            f"the files have {size:,} bytes, and one process reads at most {MOST_BYTES:,}; "
            f"{give(engine='spark')}.",
        )
    quarantine = attempt.on_bad_rows == "quarantine"
    values = values_of(inputs, attempt.fields, app.say, here, MOST_BYTES, quarantine=quarantine)
    warehouse = app.settings.warehouse
    with or_renamed(attempt.fields, values.fields):
        layout = Layout.of(warehouse, attempt, values.fields)
    layout.fit.announce(app.say)
    tables = chain.from_iterable(map(values.tables, values.pieces))
    try:
        written = write_batches(layout, chain.from_iterable(map(pa.Table.to_batches, tables)))
    except OSError as error:
        raise not_writable(warehouse, error) from error
    return staged_rejected(app, layout.staged([written]), attempts, inputs.origin)
