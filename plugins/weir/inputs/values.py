"""The rows of input files, whatever their format is and whoever reads them."""

from collections.abc import Callable, Sequence

from weir.inputs.files import Inputs
from weir.inputs.folder_columns import WithFolders, folder_columns
from weir.inputs.renamed_columns import Renamed, as_files_call
from weir.inputs.rows import Answer, P, Run, Values
from weir.kernel.text_formats import check_format
from weir.model.schema import Field


def values_of(
    inputs: Inputs,
    known: list[Field] | None,
    say: Callable[[str], None],
    run: Run,
    most: int,
    *,
    quarantine: bool = False,
) -> Values:
    """Return how to read the rows of files, with the columns that the names of their folders hold.
    Columns that the stream has (`known`) keep its types, where files do not say them. `most`: about
    so many bytes of a file one process reads; `quarantine`: as of `json_values`.

    Raises InvalidInput that names what can't be read, or not unchanged.
    """
    rename = dict(inputs.rename)
    known = as_files_call(known, rename) if rename else known
    for written in (inputs.how.date_format, inputs.how.timestamp_format):
        check_format(written)
    values: Values  # a command of two rows need not load the readers of other formats
    if inputs.format == "csv":
        from weir.inputs.csv_rows import csv_values

        values = csv_values(inputs, known, say, run, most)
    elif inputs.format == "json":
        from weir.inputs.json_rows import json_values

        values = json_values(inputs, known, say, run, most, quarantine=quarantine)
    else:
        from weir.inputs.parquet_rows import parquet_values

        values = parquet_values(inputs, most)
    folders = folder_columns(inputs, values.fields, known, say)
    values = values if folders is None else WithFolders(values, folders)
    return Renamed.of(values, rename) if rename else values


def here(function: Callable[[P], Answer], pieces: Sequence[P]) -> list[Answer]:
    """Call a function with each piece in this process: a `Run`."""
    return list(map(function, pieces))
