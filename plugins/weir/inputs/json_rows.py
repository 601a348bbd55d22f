"""Json files as rows of values, whoever reads them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from weir.errors import InvalidInput
from weir.front_ends import do
from weir.inputs.csv_header import check_text_of
from weir.inputs.csv_pieces import Piece
from weir.inputs.files import Inputs
from weir.inputs.json_guess import column_kind
from weir.inputs.json_pieces import Json, Looked, looked_at, objects_of, pieces_of
from weir.inputs.json_reader import LONGEST_LINE, Objects
from weir.inputs.json_values import Reading
from weir.inputs.rows import Bad, Run, marks_of, ranks_of, with_bad
from weir.inputs.text_guess import Guess, field_of, lines_of
from weir.kernel.rejected import MALFORMED
from weir.model.names import check_user_columns
from weir.model.schema import SEQ, VOID, Field, Kind, parts_of, plain, show, simple_types


@dataclass(frozen=True)
class JsonValues:
    """The rows of json files in the types of their columns. Processes may send it to each other."""

    files: Json
    pieces: list[Piece]
    fields: list[Field]
    reading: Reading

    def tables(self, piece: Piece) -> Iterator[pa.Table]:
        """Yield the rows of a piece with their ranks (`_weir_seq`). Those that do not fit their
        columns are marked (`_weir_malformed`)."""
        for found in objects_of(self.files, piece):
            if found.numbers or found.malformed:
                yield _valued(found, piece.file, self.fields, self.reading)


def json_values(
    inputs: Inputs,
    known: list[Field] | None,
    say: Callable[[str], None],
    run: Run,
    most: int,
    *,
    quarantine: bool,
) -> JsonValues:
    """Return how to read the rows of json files, each of which was looked at. Columns that the
    stream has (`known`) keep its types. `most`: bytes of a file that one process reads;
    `quarantine`: set rows aside that have a field which their column lacks, in place of refusing
    the files.

    Raises InvalidInput that names what can't be read, or not unchanged.
    """
    files = Json(inputs.root, tuple(file.path for file in inputs.files))
    pieces = pieces_of(files, [file.bytes for file in inputs.files], most)
    pieces, looked = looked_at(files, pieces, run)
    whole = sum(looked, Looked())
    types = {one["name"]: one for one in known or []}
    found, why = dict[str, Kind | None](), dict[str, str]()
    for name in sorted(whole.shape.fields):
        kind, reason = column_kind(whole.shape.fields[name])
        if kind is not None or name in types:
            found[name], why[name] = kind, reason
    if not found and known is None:
        raise _nothing_found(inputs, pieces, looked, whole)
    check_user_columns(list(found))
    new = {name: kind for name, kind in found.items() if kind is not None and name not in types}
    for line in lines_of(
        {n: Guess(None if kind == VOID else show(kind), why[n]) for n, kind in new.items()}
    ):
        say(line)
    fields = [types.get(n) or field_of(n, new[n]) for n in found or types]
    closed = iter(plain([one for one in fields if one["type"] != VOID]))
    fields = [one if one["type"] == VOID else next(closed) for one in fields]
    for one in fields:
        _check_type(one)
    for name in types if not quarantine else ():
        for path in _gained(types[name]["type"], found.get(name), name):
            raise InvalidInput(
                "column_unknown",
                f"{path!r} is not a field of column {name!r} of the stream, whose type can't "
                "change; leave it out, or to quarantine such rows "
                f"{do('update_stream', stream='STREAM', on_bad_rows='quarantine')}.",
            )
    return JsonValues(files, pieces, fields, Reading(inputs.how, frozenset(types)))


def _check_type(one: Field) -> None:
    """Raise InvalidInput for a column whose values json does not have."""
    if "variant" in simple_types(one["type"]) or _has_other_keys(one["type"]):
        raise InvalidInput(
            "column_type_unsupported",
            f"column {one['name']!r} is {show(one['type'])} in the stream, which a json file can't "
            "hold; append it as Parquet.",
        )


def _has_other_keys(kind: Kind) -> bool:
    """Return whether a type has a map whose keys are no texts."""
    if not isinstance(kind, str) and kind["type"] == "map" and kind["keyType"] != "string":
        return True
    return any(map(_has_other_keys, parts_of(kind)))


def _gained(known: Kind, found: Kind | None, path: str) -> list[str]:
    """Return the fields of objects, at any depth, that are in `found` but not in `known`."""
    if found is None or isinstance(known, str) or isinstance(found, str):
        return []
    if known["type"] == "struct" and found["type"] == "struct":
        parts = {field["name"]: field["type"] for field in known["fields"]}
        paths = []
        for field in found["fields"]:
            name = field["name"]
            below = f"{path}.{name}"
            paths += _gained(parts[name], field["type"], below) if name in parts else [below]
        return paths
    if known["type"] == "array" and found["type"] == "array":
        return _gained(known["elementType"], found["elementType"], f"{path}[]")
    return []


def _nothing_found(
    inputs: Inputs, pieces: Sequence[Piece], looked: Sequence[Looked], whole: Looked
) -> InvalidInput:
    """Return the error for json files in which there is no column."""
    for piece, one in zip(pieces, looked, strict=True):
        if one.finding:
            check_text_of(inputs.files[piece.file].path, one.finding)
    if whole.twice:
        return InvalidInput(
            "columns_invalid",
            f"an object in the files has the name {whole.twice!r} twice; rename one of them.",
        )
    if whole.longest > LONGEST_LINE:
        return InvalidInput(
            "file_invalid",
            f"a line of the files has {whole.longest:,} bytes, but an event may have at most "
            f"{LONGEST_LINE:,} as JSON; write one object per line.",
        )
    if not whole.example:
        return InvalidInput(
            "file_invalid",
            f"the input file {inputs.files[0].path!r} is empty; it must have at least one JSON "
            "object.",
        )
    return InvalidInput(
        "columns_invalid",
        f"no line of {inputs.files[0].path!r} is a JSON object with a field (the first line is "
        f"{whole.example!r}); write one object per line.",
    )


def _valued(found: Objects, file: int, fields: Sequence[Field], reading: Reading) -> pa.Table:
    """Return objects as values of their columns' types. What has a value that its type does not
    keep is one malformed row, with the first of these."""
    columns, faults = reading.columns(found.rows, fields)
    names = [one["name"] for one in fields]
    ranks = pa.array(ranks_of(file, found.numbers))
    bad: dict[int, Bad] = {}  # by the number of its first object
    for row in sorted(faults):
        bad.setdefault(found.firsts[row], (found.texts[row], *faults[row]))
    marks = marks_of([None] * len(found.numbers))
    table = pa.table([*columns, ranks, marks], names=[*names, SEQ, MALFORMED])
    if bad:
        table = table.filter(pa.array([first not in bad for first in found.firsts]))
    bad |= {number: (text, None, None, None) for number, text in found.malformed}
    return with_bad(table, file, bad)
