"""The columns of Parquet input files, from their footers as data (docs/decisions/0050)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from weir.errors import InvalidInput
from weir.inputs.files import Inputs
from weir.inputs.parquet_footer import CODECS, Encrypted, WrongFooter, read_footer
from weir.inputs.parquet_types import NANOSECONDS, UUID, columns_of_elements, each_type
from weir.inputs.unreadable import one_line
from weir.model.names import check_user_columns
from weir.model.schema import VOID, Field, is_open, plain, same_type, show, simple_types, wider
from weir.warehouse.filesystem import filesystem

# The codecs that come with Spark.
_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4", "LZ4_RAW"}
# The encodings that Spark's vectorized reader knows, by the numbers of parquet.thrift. It lacks
# BYTE_STREAM_SPLIT, which its other reader has.
_VECTORIZED = frozenset({0, 2, 3, 4, 5, 6, 7, 8})


@dataclass(frozen=True)
class ParquetFields:
    """The columns of some Parquet files."""

    fields: list[Field]  # in the types of the files: also VOID, UUID and NANOSECONDS
    by_row: bool  # whether only Spark's row-based reader can read all the files
    # Nested columns, with the files in which they are of no type: Spark reads these as empty lists.
    void_in: dict[str, list[str]]


def parquet_fields(inputs: Inputs) -> ParquetFields:
    """Return the columns of all files. A column is null in files that lack it.

    Raises InvalidInput for a file that is not a Parquet file, that is encrypted or that Spark can't
    read, and for a column whose types in several files have no type that holds both.
    """
    system, base = filesystem(inputs.root)

    def columns(path: str) -> tuple[list[Field], bool]:
        try:
            with system.open_input_file(f"{base}/{path}") as source:
                footer = read_footer(source)
            found = columns_of_elements(path, footer.elements)
        except Encrypted as error:
            raise InvalidInput(
                "file_encrypted",
                f"the input file {path!r} can't be read, because {error}; write it without "
                "encryption.",
            ) from None
        except (WrongFooter, OSError) as error:
            raise InvalidInput(
                "file_format_wrong",
                f"the input file {path!r} is not a Parquet file ({one_line(str(error))}); choose "
                "its real format.",
            ) from None
        names = {CODECS[i] if 0 <= i < len(CODECS) else f"codec {i}" for i in footer.codecs}
        if unknown := names - _CODECS:
            raise InvalidInput(
                "compression_unsupported",
                f"the input file {path!r} is compressed with {min(unknown)}, which Spark can't "
                "read; compress it with snappy, zstd or gzip.",
            )
        check_user_columns([one["name"] for one in found])
        for one in found:
            _check_inner(path, one)
        return found, not footer.encodings <= _VECTORIZED

    with ThreadPoolExecutor(16) as pool:
        files = list(pool.map(columns, [file.path for file in inputs.files]))
    by_row = any(row for _, row in files)
    fields: dict[str, tuple[Field, str]] = {}  # with the first file that has the column
    seen: list[list[Field]] = []
    for (found, _), file in zip(files, inputs.files, strict=True):
        if found in seen:
            continue
        seen.append(found)
        for one in found:
            before, origin = fields.setdefault(one["name"], (one, file.path))
            kind = wider(before["type"], one["type"])
            if kind is None:
                raise InvalidInput(
                    "column_type_differs",
                    f"column {one['name']!r} is {show(one['type'])} in {file.path!r}, but "
                    f"{show(before['type'])} in {origin!r}; cast one of them, so that all files "
                    "have the same type.",
                )
            fields[one["name"]] = ({**before, "type": kind}, origin)
    # The rules that hold for all doors, before Spark sees the columns and has its own words.
    plain([{**one, "type": each_type(one["type"], as_scanned)} for one, _ in fields.values()])
    return ParquetFields(
        [one for one, _ in fields.values()],
        by_row or any(_mixed(one, fields[one["name"]][0]) for found in seen for one in found),
        _void_in(fields, [found for found, _ in files], [file.path for file in inputs.files]),
    )


def _void_in(
    fields: dict[str, tuple[Field, str]], files: list[list[Field]], paths: list[str]
) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for columns, path in zip(files, paths, strict=True):
        for one in columns:
            if one["type"] == VOID and not isinstance(fields[one["name"]][0]["type"], str):
                found.setdefault(one["name"], []).append(path)
    return found


def _mixed(one: Field, whole: Field) -> bool:
    """Return whether a file has a column in another type than it is read in. Spark's row-based
    reader does not mind where there is no value."""
    kind = one["type"]
    return (is_open(kind) and kind != VOID) or not same_type(kind, whole["type"])


def _check_inner(path: str, field: Field) -> None:
    """Raise InvalidInput for a type within another that is read only outside of it."""
    if isinstance(field["type"], str):
        return
    inner = simple_types(field["type"])
    if UUID in inner:
        raise InvalidInput(
            "column_type_unsupported",
            f"column {field['name']!r} of the input file {path!r} has UUIDs, which Weir reads only "
            "outside of structs, lists and maps; write them as strings.",
        )
    if NANOSECONDS.keys() & inner:
        raise InvalidInput(
            "column_type_unsupported",
            f"column {field['name']!r} of the input file {path!r} is in nanoseconds, which Weir "
            "reads only outside of structs, lists and maps; write it in microseconds (in pandas: "
            "to_parquet with coerce_timestamps='us').",
        )


def as_scanned(kind: str) -> str:
    """Return the type in which Spark reads a type of a file."""
    if kind in NANOSECONDS:
        return "long"
    return {UUID: "binary", VOID: "integer"}.get(kind, kind)
