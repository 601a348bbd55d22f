"""Types that people declare or cast to: those whose values mean the same in every program that
reads a stream's files."""

import re
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    VariantType,
)

from weir.errors import InvalidInput

_PLAIN = (
    BinaryType, BooleanType, ByteType, DateType, DecimalType, DoubleType, FloatType, IntegerType,
    LongType, ShortType, StringType, TimestampNTZType, TimestampType, VariantType,
)  # fmt: skip
_UNLIKE = re.compile(
    r"\b(collate|interval|char\(|varchar\(|void|geometry|geography)", re.IGNORECASE
)


def check_types(struct: StructType, what: str) -> None:
    """Check the types of declared columns, at any depth. `what`: whose columns, if it is not clear.

    Raises InvalidInput for a type that Parquet does not have, or whose values compare in another
    way than the files say: COLLATE, CHAR, VARCHAR, INTERVAL, VOID, GEOMETRY, TIME.
    """
    for field in struct.fields:
        if (other := _other(field.dataType)) is not None:
            raise InvalidInput(
                "column_type_unsupported",
                f"column {field.name!r}{what} is declared as {_shown(other)}, which a stream's "
                f"files can't say; declare it as {_instead(other)}.",
            )


def check_type(java: Any, what: str) -> None:
    """Check the type to which an expression casts. Raises InvalidInput as `check_types`."""
    written = str(java.sql())
    if _UNLIKE.search(written):
        raise InvalidInput(
            "expression_not_allowed",
            f"{what} casts to {written}, whose values mean something else in the files; cast to "
            "STRING or to a number.",
        )


def _other(kind: DataType) -> DataType | None:
    """Return the first type within a type that is not allowed."""
    if isinstance(kind, StructType):
        return next((o for f in kind.fields if (o := _other(f.dataType)) is not None), None)
    if isinstance(kind, ArrayType):
        return _other(kind.elementType)
    if isinstance(kind, MapType):
        return _other(kind.keyType) or _other(kind.valueType)
    collated = isinstance(kind, StringType) and kind.collation != "UTF8_BINARY"
    return kind if type(kind) not in _PLAIN or collated else None


def _shown(kind: DataType) -> str:
    return kind.simpleString().upper()


def _instead(kind: DataType) -> str:
    name = kind.simpleString()
    if name.startswith(("interval", "time")):
        return "BIGINT, in a unit that its name says, or STRING"
    if name == "void":
        return "the type that its values will have"
    if name.startswith("geo"):
        return "BINARY (WKB) or STRING (WKT)"
    return "STRING"
