"""The columns of a result: which ones fit a table, and which ones can name folders."""

from collections import Counter
from collections.abc import Sequence

from weir.consumers.outputs import Output
from weir.errors import InvalidInput
from weir.model.schema import VOID, Field, Kind, check_field, show
from weir.queries.reader_groups.outputs.tables import Column

# For each type, in Spark's JSON form, the types of Postgres that keep all its values unchanged.
_FITS = {
    "boolean": {"bool"},
    "byte": {"int2", "int4", "int8", "numeric"},
    "short": {"int2", "int4", "int8", "numeric"},
    "integer": {"int4", "int8", "numeric"},
    "long": {"int8", "numeric"},
    "float": {"float4", "float8"},
    "double": {"float8"},
    "decimal": {"numeric"},
    "string": {"text", "varchar", "uuid", "json", "jsonb"},
    "binary": {"bytea"},
    "date": {"date"},
    "timestamp": {"timestamptz"},
    "timestamp_ntz": {"timestamp"},
    "array": {"json", "jsonb"},
    "map": {"json", "jsonb"},
    "struct": {"json", "jsonb"},
    "variant": {"json", "jsonb"},
}
_MICROSECONDS = {"timestamp", "timestamptz"}
# As SQL calls the types whose values a folder's name keeps exactly, and other whole numbers.
_SQL = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
_NAMED = (*_SQL, "boolean", "date", "string")
FOLDERS = ("batch", "attempt")  # that are above the files in any case


def matched(
    table: str, columns: Sequence[Column], given: Sequence[Field], needed: Sequence[str] = ()
) -> list[Column]:
    """Return the table's columns for the columns of a result, in the result's order, matched by
    name. `needed`: columns that the result must have in any case.

    Raises InvalidInput for a column that the table does not have, that does not fit, that occurs
    twice, or that is missing.
    """
    names = [field["name"] for field in given]
    if twice := [name for name in names if names.count(name) > 1]:
        raise InvalidInput(
            "columns_invalid",
            f"the result for table {table} has column {twice[0]!r} twice; rename or drop one.",
        )
    if ours := [name for name in names if name.lower().startswith("_weir")]:
        raise InvalidInput(
            "columns_invalid",
            f"column {ours[0]!r} of the result for table {table} has a reserved name (_weir...); "
            "rename it.",
        )
    known = {column.name: column for column in columns}
    found = []
    for field in given:
        column = known.get(field["name"])
        if column is None:
            raise InvalidInput(
                "column_unknown",
                f"table {table} has no column {field['name']!r} (it has "
                f"{', '.join(list(known)[:8])}); drop it from the result, or add it to the table.",
            )
        if column.generated:
            raise InvalidInput(
                "table_refused",
                f"column {field['name']!r} of table {table} is computed by Postgres and can't be "
                "written; leave it out of the result.",
            )
        if not _fits(field["type"], column):
            what = "cast it to what that column holds"
            if column.kind == "bpchar":
                what = "make that column text or varchar, as its type pads values with blanks"
            if column.kind in _MICROSECONDS:
                what += ", with all six digits of a second"
            raise InvalidInput(
                "column_type_differs",
                f"column {field['name']!r} is {sql_type(field['type'])}, but {column.shown} in "
                f"table {table}; {what}.",
            )
        found.append(column)
    if absent := [name for name in needed if name not in names]:
        raise InvalidInput(
            "column_missing",
            f"the result for table {table} does not have column {absent[0]!r}, which key or newest "
            "of its output names; add it to the result.",
        )
    missing = [c.name for c in columns if c.required and c not in found and not c.generated]
    if missing:
        raise InvalidInput(
            "column_missing",
            f"column {missing[0]!r} of table {table} is NOT NULL without a default, but the "
            "result does not have it; add it to the result.",
        )
    if not found:
        raise InvalidInput(
            "columns_invalid", f"the result for table {table} has no columns; return at least one."
        )
    return found


def _fits(kind: Kind, column: Column) -> bool:
    if kind == VOID:  # it has no values
        return True
    name = kind if isinstance(kind, str) else kind["type"]
    if column.is_enum:
        return name == "string"
    scale = int(name.rstrip(")").rpartition(",")[2]) if name.startswith("decimal(") else 0
    if column.scale is not None and scale > column.scale:
        return False  # Postgres would round the value
    if column.kind in _MICROSECONDS and 0 <= column.modifier < 6:
        return False  # it would round here, too
    return column.kind in _FITS.get(name.partition("(")[0], ())


def check_in_files(output: Output, given: Sequence[Field]) -> None:
    """Raise InvalidInput if two columns of a result have the same name for Spark, or if one has a
    type that files do not have."""
    counted = Counter(field["name"].lower() for field in given)
    for field in given:
        name = field["name"]
        if counted[name.lower()] > 1:
            raise InvalidInput(
                "columns_invalid",
                f"the result for {output} has column {name!r} twice (upper and lower case count as "
                "the same); rename or drop one.",
            )
        if field["type"] == VOID:
            raise InvalidInput(
                "column_type_unsupported",
                f"column {name!r} of the result for {output} has no value and no type, which "
                "Parquet readers refuse; cast it, for instance with .cast('string') of Spark, "
                ".cast(pyarrow.string()), pandas' .astype('str') or Polars' .cast(polars.String), "
                "or drop it.",
            )
        check_field(field)


def columns_of_folders(output: Output, given: Sequence[Field]) -> str:
    """Return the columns by which a result is partitioned, with their types as SQL. Raises
    InvalidInput for columns that it does not have or that can't name folders."""
    known = {field["name"]: field["type"] for field in given}
    for name in output.partition_by:
        if name not in known:
            raise InvalidInput(
                "column_unknown",
                f"the result for {output} has no column {name!r}, by which it is to be "
                f"partitioned (it has {', '.join(list(known)[:8])}); correct partition_by.",
            )
        if known[name] not in _NAMED:
            raise InvalidInput(
                "column_type_differs",
                f"column {name!r} of the result for {output} is {sql_type(known[name])}, which "
                "can't name folders; partition by strings, whole numbers, booleans or dates.",
            )
    if known.keys() == set(output.partition_by):
        raise InvalidInput(
            "column_missing",
            f"the result for {output} has no column but those by which it is partitioned "
            f"({', '.join(known)}), so its files would hold nothing; keep another one, or leave "
            "one of them out of partition_by.",
        )
    if clash := [name for name in known if name.lower() in FOLDERS]:
        raise InvalidInput(
            "columns_invalid",
            f"the result for {output} has a column {clash[0]!r}, as folders of partitioned "
            "outputs are named; rename it.",
        )
    return ", ".join(
        f"`{name.replace('`', '``')}` {sql_type(known[name])}" for name in output.partition_by
    )


def sql_type(kind: Kind) -> str:
    """Return a type as SQL of Spark calls it, if it has no others in it."""
    return _SQL.get(kind, kind) if isinstance(kind, str) else show(kind)
