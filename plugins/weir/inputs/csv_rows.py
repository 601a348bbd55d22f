"""Csv files as rows of values, without a JVM."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weir.inputs.csv_header import check_bytes, check_encoding, names_of, not_closed, text_fields
from weir.inputs.files import Inputs
from weir.inputs.rows import Rows, check_size, needs_spark, ranks_of
from weir.inputs.unreadable import text_of
from weir.kernel.csv_reader import MOST_IRREGULAR, CsvRows, NotClosed, NotRegular, encoded, read_csv
from weir.kernel.rejected import Rejected, malformed
from weir.kernel.text_guess import field_of, guess, lines_of
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import value
from weir.model.schema import GUESSED, VOID, Field, show

_PIECE = 16 << 20


def csv_rows(inputs: Inputs, known: list[Field] | None, say: Callable[[str], None]) -> Rows:
    """Return the rows of csv files. Columns that the stream has (`known`) keep its types.

    Raises InvalidInput that names what can't be read, or not unchanged, and for what only Spark
    reads.
    """
    named = names_of(inputs, known)
    inputs, names = replace(inputs, how=named.how), named.names
    fields = text_fields(names, known)
    parts, ranks, rejected = [], [], list[Rejected]()
    size = 0
    for i, file in enumerate(inputs.files):
        text = _text(inputs, file.path, size)
        size += len(text)
        found = _rows(file.path, text, names, inputs.how)
        parts.append(found.table)
        ranks.append(ranks_of(i, found.numbers))
        for number, row in found.malformed:
            rejected.append(malformed(row, int(ranks_of(i, np.array(number)))))
    texts = pa.concat_tables(parts)
    there = {one["name"] for one in known or []}
    new = [name for name in names if name not in there]
    if new and inputs.infer != "strings":
        say(f"looking at all values of {len(new)} columns, to find types that keep them")
        guesses = {name: guess(texts[name], inputs.how) for name in new}
        for line in lines_of(guesses):
            say(line)
        fields = [field_of(n, guesses[n]) if n in guesses else one
                  for n, one in zip(names, fields, strict=True)]  # fmt: skip
    return _valued(texts, fields, np.concatenate(ranks), rejected, inputs.how)


def _text(inputs: Inputs, path: str, before: int) -> bytes:
    """Return the text of a file in UTF-8, from its header line on."""
    pieces = []
    size = before
    with text_of(inputs.root, path) as source:
        while piece := source.read(_PIECE):
            size += len(piece)
            check_size(size)
            pieces.append(piece)
    raw = b"".join(pieces)
    if inputs.how.encoding != "utf-8":
        check_encoding(inputs, path)
    text = encoded(raw, inputs.how)
    check_bytes(path, text)
    return text


def _rows(path: str, text: bytes, names: Sequence[str], how: TextOptions) -> CsvRows:
    try:
        return read_csv(text, names, how)
    except NotClosed as error:
        raise not_closed(path, error.line + how.skip_lines, how) from None
    except NotRegular:
        raise needs_spark(
            f"the quotes of {path!r}, or its comments, are not those of RFC 4180, and "
            f"one process reads at most {MOST_IRREGULAR:,} bytes of such a file"
        ) from None


def _valued(
    texts: pa.Table,
    fields: list[Field],
    ranks: np.ndarray,
    rejected: list[Rejected],
    how: TextOptions,
) -> Rows:
    """Return rows of texts as values of their columns' types. A row with a text that its type does
    not keep is rejected, with the first of these."""
    columns = []
    faults = np.full(len(ranks), -1)
    for i, one in reversed(list(enumerate(fields))):
        text, kind = texts.column(i), one["type"]
        if kind == "string":
            columns.append(text)
            continue
        if kind == VOID:
            columns.append(pa.chunked_array([pa.nulls(len(text))]))
            continue
        guessed = bool((one.get("metadata") or {}).get(GUESSED))
        found = value(text, show(kind), how, guessed=guessed)
        columns.append(found)
        lost = pc.and_(pc.is_null(found), pc.fill_null(pc.not_equal(text, ""), False))
        faults[np.flatnonzero(lost.to_numpy())] = i
    names = [one["name"] for one in fields]
    table = pa.table(dict(zip(reversed(names), columns, strict=True))).select(names)
    bad = np.flatnonzero(faults >= 0)
    if len(bad):
        of = texts.take(pa.array(bad))
        for place, row in zip(bad.tolist(), zip(*(c.to_pylist() for c in of.columns), strict=True),
                              strict=True):  # fmt: skip
            which = int(faults[place])
            fault = names[which], row[which], show(fields[which]["type"])
            rejected.append(malformed(_written(row, how), int(ranks[place]), fault))
        kept = faults < 0
        table, ranks = table.filter(pa.array(kept)), ranks[kept]
    return Rows(fields, table, ranks, rejected)


def _written(row: Sequence[str | None], how: TextOptions) -> str:
    """Return a row as a csv file has it."""
    special = (how.separator, how.quote or how.separator, "\n", "\r")
    cells = []
    for one in row:
        if one is None:
            cells.append(how.null_value)
        elif one == "":
            cells.append(how.quote * 2)
        elif how.quote and any(sign in one for sign in special):
            escaped = one.replace(how.quote, (how.escape or how.quote) + how.quote)
            cells.append(f"{how.quote}{escaped}{how.quote}")
        else:
            cells.append(one)
    return how.separator.join(cells)
