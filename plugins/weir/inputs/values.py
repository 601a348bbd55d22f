"""Text files as values in pieces, which one process reads, or many."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from weir.inputs.csv_pieces import Piece, Run
from weir.inputs.csv_rows import CsvValues, csv_values
from weir.inputs.files import Inputs
from weir.inputs.json_rows import JsonValues, json_values
from weir.model.schema import Field

Values: TypeAlias = CsvValues | JsonValues


def values_of(
    inputs: Inputs,
    known: list[Field] | None,
    say: Callable[[str], None],
    run: Run,
    most: int,
    *,
    quarantine: bool,
) -> Values:
    """Return how to read the rows of csv or json files, each of which was looked at. The arguments
    are those of `csv_values` and `json_values`, which say what is raised, too."""
    if inputs.format == "csv":
        return csv_values(inputs, known, say, run, most)
    return json_values(inputs, known, say, run, most, quarantine=quarantine)


def here(function: Callable[[Piece], str], pieces: Sequence[Piece]) -> list[str]:
    """Call a function with each piece in this process: a `Run`."""
    return list(map(function, pieces))
