"""Csv files as rows of values, whoever reads them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.errors import counted
from weir.inputs.csv_header import check_text_of, names_of, text_fields
from weir.inputs.csv_pieces import Csv, Piece, looked_at, pieces_of, rows_of
from weir.inputs.csv_reader import CsvRows
from weir.inputs.files import Inputs
from weir.inputs.rows import Bad, Run, marks_of, ranks_of, with_bad
from weir.inputs.text_guess import Look, field_of, guess, lines_of
from weir.kernel.rejected import MALFORMED
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import value
from weir.model.schema import GUESSED, SEQ, VOID, Field, show


@dataclass(frozen=True)
class CsvValues:
    """The rows of csv files in the types of their columns. Processes may send it to each other."""

    csv: Csv
    pieces: list[Piece]
    fields: list[Field]

    def tables(self, piece: Piece) -> Iterator[pa.Table]:
        """Yield the rows of a piece with their ranks (`_weir_seq`). Those that do not fit their
        columns are marked (`_weir_malformed`)."""
        for found in rows_of(self.csv, piece):
            yield _valued(found, piece.file, self.fields, self.csv.how)


def csv_values(
    inputs: Inputs,
    known: list[Field] | None,
    say: Callable[[str], None],
    run: Run,
    most: int,
) -> CsvValues:
    """Return how to read the rows of csv files, each of which was looked at. Columns that the
    stream has (`known`) keep its types. `most`: bytes of a file that one process reads.

    Raises InvalidInput that names what can't be read, or not unchanged.
    """
    header = names_of(inputs, known)
    fields = text_fields(header.names, known)
    there = {one["name"] for one in known or []}
    new = [name for name in header.names if name not in there] if inputs.infer == "types" else []
    paths = tuple(file.path for file in inputs.files)
    csv = Csv(inputs.root, paths, tuple(header.names), header.how, tuple(new))
    if new:
        say(f"looking at all values of {counted(len(new), 'column')}, to find types that keep them")
    pieces = pieces_of(csv, [file.bytes for file in inputs.files], most, run)
    pieces, looked = looked_at(csv, pieces, run)
    for file, path in enumerate(paths):
        wrong = [one.finding for piece, one in zip(pieces, looked, strict=True)
                 if piece.file == file and one.finding is not None]  # fmt: skip
        if wrong:
            check_text_of(path, sum(wrong[1:], wrong[0]))
    guesses = {
        name: guess(sum((one.columns[i] for one in looked), Look()), csv.how)
        for i, name in enumerate(new)
    }
    for line in lines_of(guesses):
        say(line)
    fields = [
        field_of(one["name"], guesses[one["name"]].kind or VOID) if one["name"] in guesses else one
        for one in fields
    ]
    return CsvValues(csv, pieces, fields)


def _valued(found: CsvRows, file: int, fields: Sequence[Field], how: TextOptions) -> pa.Table:
    """Return rows of texts as values of their columns' types. A row with a text that its type does
    not keep is marked with the first of these."""
    columns, texts = [], found.table
    faults = np.full(len(found.numbers), -1)
    for i, one in reversed(list(enumerate(fields))):
        text, kind = texts.column(i), one["type"]
        if kind == VOID:
            columns.append(pa.chunked_array([pa.nulls(len(text))]))
        elif kind == "string":
            columns.append(text)
        else:
            guessed = bool((one.get("metadata") or {}).get(GUESSED))
            columns.append(value(text, show(kind), how, guessed=guessed))
            lost = pc.and_(pc.is_null(columns[-1]), pc.fill_null(pc.not_equal(text, ""), False))
            faults[np.flatnonzero(lost.to_numpy())] = i
    bad = np.flatnonzero(faults >= 0)
    marks: list[Bad] = []
    for row, column in zip(texts.take(pa.array(bad)).to_pylist(), faults[bad], strict=True):
        one = fields[int(column)]
        text = _written(list(row.values()), how)
        marks.append((text, one["name"], row[one["name"]], show(one["type"])))
    of = np.zeros(len(faults), np.int64)
    of[bad] = np.arange(len(bad))
    mark = marks_of(marks).take(pa.array(of, mask=faults < 0))
    names = [one["name"] for one in fields]
    ranks = pa.array(ranks_of(file, found.numbers))
    table = pa.table([*reversed(columns), ranks, mark], names=[*names, SEQ, MALFORMED])
    return with_bad(table, file, {n: (row, None, None, None) for n, row in found.malformed})


def _written(row: Sequence[str | None], how: TextOptions) -> str:
    """Return a row as a csv file has it."""
    special = (how.separator, how.quote or how.separator, how.comment or how.separator, "\n", "\r")
    escape = how.escape or how.quote
    cells = []
    for one in row:
        if one is None:
            cells.append(how.null_value)
        elif one == "":
            cells.append(how.quote * 2)
        elif how.quote and any(sign in one for sign in special):
            escaped = one.replace(escape, escape * 2)
            if escape != how.quote:
                escaped = escaped.replace(how.quote, escape + how.quote)
            cells.append(f"{how.quote}{escaped}{how.quote}")
        else:
            cells.append(one)
    return how.separator.join(cells)
