"""The columns of Parquet input files, from their footers as data (docs/decisions/0099)."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from weir.errors import InvalidInput
from weir.inputs.files import Inputs
from weir.inputs.parquet_footer import CODECS, Encrypted, Footer, WrongFooter, read_footer
from weir.inputs.parquet_types import NANOSECONDS, UUID, columns_of_elements, each_type
from weir.inputs.unreadable import one_line
from weir.model.names import check_user_columns
from weir.model.schema import VOID, Field, plain, show, simple_types, wider
from weir.warehouse.filesystem import filesystem

# The codecs that pyarrow has.
_CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4", "LZ4_RAW"}


@dataclass(frozen=True)
class ParquetFile:
    """What the footer of a file says. `columns`: in its own types, also VOID, UUID and
    NANOSECONDS."""

    columns: list[Field]
    footer: Footer


def parquet_fields(inputs: Inputs) -> tuple[list[Field], list[ParquetFile]]:
    """Return the columns of all files in the types that hold the values of each, and the files. A
    column is null in files that lack it.

    Raises InvalidInput for a file that is not a Parquet file, that is encrypted or compressed in a
    way that pyarrow lacks, and for a column whose types in several files have no type that holds
    both.
    """
    system, base = filesystem(inputs.root)

    def columns(path: str) -> ParquetFile:
        try:
            with system.open_input_file(f"{base}/{path}") as source:
                footer = read_footer(source)
            found = columns_of_elements(path, footer.elements)
        except Encrypted as error:
            raise InvalidInput(
                "file_invalid",
                f"the input file {path!r} can't be read, because {error}; write it without "
                "encryption.",
            ) from None
        except (WrongFooter, OSError) as error:
            raise InvalidInput(
                "file_invalid",
                f"the input file {path!r} is not a Parquet file ({one_line(str(error))}); choose "
                "its real format.",
            ) from None
        names = {CODECS[i] if 0 <= i < len(CODECS) else f"codec {i}" for i in footer.codecs}
        if unknown := names - _CODECS:
            raise InvalidInput(
                "file_invalid",
                f"the input file {path!r} is compressed with {min(unknown)}, which pyarrow can't "
                "read; compress it with snappy, zstd or gzip.",
            )
        check_user_columns([one["name"] for one in found])
        for one in found:
            _check_inner(path, one)
        return ParquetFile(found, replace(footer, elements=[], codecs=set()))

    with ThreadPoolExecutor(16) as pool:
        files = list(pool.map(columns, [file.path for file in inputs.files]))
    fields: dict[str, tuple[Field, str]] = {}  # with the first file that has the column
    seen: list[list[Field]] = []
    for number, (one_file, file) in enumerate(zip(files, inputs.files, strict=True)):
        if one_file.columns in seen:  # and not once more where Spark's tasks get them
            files[number] = replace(one_file, columns=seen[seen.index(one_file.columns)])
            continue
        seen.append(one_file.columns)
        for one in one_file.columns:
            own = each_type(one["type"], _kept)
            before, origin = fields.setdefault(one["name"], ({**one, "type": own}, file.path))
            kind = wider(before["type"], own)
            if kind is None:
                raise InvalidInput(
                    "column_type_differs",
                    f"column {one['name']!r} is {show(one['type'])} in {file.path!r}, but "
                    f"{show(before['type'])} in {origin!r}; cast one of them, so that all files "
                    "have the same type.",
                )
            fields[one["name"]] = ({**before, "type": kind}, origin)
    found = [one for one, _ in fields.values()]
    # The rules that hold for all doors; a type that is not known yet may become any.
    plain([{**one, "type": each_type(one["type"], _as_known)} for one in found])
    return found, files


def _check_inner(path: str, field: Field) -> None:
    """Raise InvalidInput for a type within another that is read only outside of it."""
    if isinstance(field["type"], str):
        return
    if UUID in simple_types(field["type"]):
        raise InvalidInput(
            "column_type_unsupported",
            f"column {field['name']!r} of the input file {path!r} has UUIDs, which Weir reads only "
            "outside of structs, lists and maps; write them as strings.",
        )


def _kept(kind: str) -> str:
    """Return the type in which values of a type of a file are kept."""
    return "string" if kind == UUID else NANOSECONDS.get(kind, kind)


def _as_known(kind: str) -> str:
    return "boolean" if kind == VOID else kind
