"""The schema of a stream, in Spark's JSON form of a struct's fields, each with two more entries if
it needs them: `stored`, the name that the column has in files, and `default`, the text of the value
that rows have whose append did not have the column (semantics 5.5)."""

import re
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from weir.errors import InvalidInput
from weir.front_ends import do
from weir.model.names import check_text, check_user_columns


class Field(TypedDict):
    """A column, or a part of one."""

    name: str
    type: "Kind"
    nullable: bool
    metadata: NotRequired[Mapping[str, object]]
    stored: NotRequired[str]
    default: NotRequired[str]


class Struct(TypedDict):
    """The type of values that have fields."""

    type: Literal["struct"]
    fields: list[Field]


class List(TypedDict):
    """The type of lists."""

    type: Literal["array"]
    elementType: "Kind"
    containsNull: bool


class Map(TypedDict):
    """The type of maps."""

    type: Literal["map"]
    keyType: "Kind"
    valueType: "Kind"
    valueContainsNull: bool


Kind: TypeAlias = str | Struct | List | Map
# In the metadata of a column: its type was guessed from texts, so a text must come back from its
# value in later files, too (semantics 12.3).
GUESSED = "guessed"
SEQ = "_weir_seq"  # the column of data files with the rank of each event in its append
CLOCK = "_weir_clock"  # of files of several commits: with the clock of each event (semantics 12.5)
# Of the same files, with the same: in files whose columns DuckLake finds by name it looks for the
# number that Iceberg reserves for when a row came about, as if it were a name.
CLOCK_BY_NUMBER = "2147483539"
# Of files without the events that were erased: with the offset of each that is left (semantics 20).
OFFSET = "_weir_offset"
# Of the same files, likewise: the place of each row, as DuckLake numbers rows.
PLACE_BY_NUMBER = "2147483540"
MOST_COLUMNS = 10_000
DEEPEST = 40  # fields within fields; readers of Parquet fail at 100, and a list takes two levels
PLACES = ("_segment", "_offset", "_clock")  # columns that a read adds
STREAM = "_stream"  # a column that a read of several streams adds
VOID = "void"  # the type of a column in which nobody has seen a value
# The types of columns, besides lists, maps and structs. Others are refused, because Parquet, Arrow
# or SQL lacks them, or (char, collations) because they change what is equal.
_TYPES = frozenset(
    "string boolean byte short integer long float double binary date timestamp timestamp_ntz "
    "variant".split()
)
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
# Types that hold all values of those before them.
_WIDENING = (
    ("byte", "short", "integer", "long"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
)
# The digits before the point of a decimal as which Spark reads files of whole numbers exactly. With
# fewer its readers refuse, or make nulls of the values, even where all of them would fit.
WHOLE = {"byte": 10, "short": 10, "integer": 10, "long": 20}

MOST_DIGITS = 18  # of a decimal whose defaults Spark's vectorized reader reads


def new_field(name: str, kind: Kind) -> Field:
    """Return a column, or a part of one, that may be null and of which no more is said."""
    return {"name": name, "type": kind, "nullable": True, "metadata": {}}


def list_of(kind: Kind, nullable: bool = True) -> List:
    """Return the type of lists. `nullable`: whether elements may be null."""
    return {"type": "array", "elementType": kind, "containsNull": nullable}


def map_of(key: Kind, value: Kind, nullable: bool = True) -> Map:
    """Return the type of maps. `nullable`: whether values may be null."""
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": nullable}


OFFSET_FIELD, CLOCK_FIELD = new_field(OFFSET, "long"), new_field(CLOCK, "long")


def stored_name(field: Field) -> str:
    """Return the name that a column has in files, which it got when it was added, and keeps."""
    return str(field.get("stored", field["name"]))


def field_id(path: Sequence[str]) -> int:
    """Return the Parquet field id of a column or of a part of it, computed from the path of stored
    names; `element`, `key` and `value` are the parts of lists and maps."""
    if len(path) == 1 and path[0] in (CLOCK_BY_NUMBER, PLACE_BY_NUMBER):
        return int(path[0])
    return zlib.crc32("\0".join(path).encode()) % (1 << 30) + 1


def merge(
    stream: str, current: list[Field] | None, given: list[Field], dropped: Collection[str] = ()
) -> list[Field]:
    """Return the schema after appending rows of the schema `given`; `current` itself if nothing is
    new.

    Columns missing in `given` are null in the new rows. New columns are added at the end, nullable,
    with names in files that no column has or had (`dropped`: those of columns that were dropped).
    Raises InvalidInput naming a column whose type differs, or that must not be missing.
    """
    given = plain(given)
    if not given:
        raise InvalidInput(
            "columns_invalid", f"the rows for stream {stream} have no columns; append at least one."
        )
    if current is None:
        return _stored([{**field, "nullable": True} for field in given], [], dropped)
    known = {field["name"]: field for field in current}
    by_lower = {name.lower(): name for name in known}
    added = list[Field]()
    for field in given:
        name = field["name"]
        if name in known:
            if not same_type(known[name]["type"], field["type"]):
                kind = known[name]["type"]
                wide = widening(stream, name, kind, field["type"])
                raise InvalidInput(
                    "column_type_differs",
                    f"column {name!r} is {show(field['type'])}, but {show(kind)} in stream "
                    f"{stream}; cast it before appending{f', or {wide}' if wide else ''}.",
                )
        elif name.lower() in by_lower:
            raise InvalidInput(
                "columns_invalid",
                f"column {name!r} differs from column {by_lower[name.lower()]!r} of stream "
                f"{stream} only in upper and lower case; rename it.",
            )
        else:
            added.append({**field, "nullable": True})
    names = {field["name"] for field in given}
    missing = [n for n, f in known.items() if not f["nullable"] and n not in names]
    if missing:
        raise InvalidInput(
            "column_missing",
            f"column {missing[0]!r} of stream {stream} is required, but the rows do not have it; "
            "add it.",
        )
    if len(added) == len(given):
        raise InvalidInput(
            "column_unknown",
            f"stream {stream} has none of the columns {', '.join(f['name'] for f in given[:5])} "
            f"(it has {', '.join(list(known)[:5])}); check that this is the right file.",
        )
    return [*current, *_stored(added, current, dropped)] if added else current


def _stored(added: list[Field], current: list[Field], dropped: Collection[str]) -> list[Field]:
    """Return new columns with their names in files; those that name theirs choose first. Spark
    finds a column of a file whatever the case of its letters."""
    taken = {
        name.lower()
        for name in (CLOCK_BY_NUMBER, PLACE_BY_NUMBER, *dropped, *map(stored_name, current))
    }
    found = {}
    for field in sorted(added, key=lambda one: "stored" not in one):
        name, stored, number = field["name"], stored_name(field), 2
        while stored.lower() in taken:
            stored, number = f"{name}#{number}", number + 1
        taken.add(stored.lower())
        found[name] = field if stored == name else {**field, "stored": stored}
    return [found[field["name"]] for field in added]


def parts_of(kind: Kind) -> list[Kind]:
    """Return the types that a type is made of: of fields, of elements, or of keys and of values."""
    if isinstance(kind, str):
        return []
    if kind["type"] == "struct":
        return [part["type"] for part in kind["fields"]]
    if kind["type"] == "array":
        return [kind["elementType"]]
    if kind["type"] == "map":
        return [kind["keyType"], kind["valueType"]]
    return []  # a type of Spark that streams do not have


def with_parts(kind: Kind, parts: Sequence[Kind]) -> Kind:
    """Return a type with others in the place of those that it is made of."""
    if isinstance(kind, str) or not parts:
        return kind
    if kind["type"] == "struct":
        pairs = zip(kind["fields"], parts, strict=True)
        return {**kind, "fields": [{**field, "type": part} for field, part in pairs]}
    if kind["type"] == "array":
        return {**kind, "elementType": parts[0]}
    return {**kind, "keyType": parts[0], "valueType": parts[1]}


def simple_types(kind: Kind) -> set[str]:
    """Return the types in a type that have no others in them."""
    return {kind} if isinstance(kind, str) else set().union(*map(simple_types, parts_of(kind)))


def wider(a: Kind, b: Kind) -> Kind | None:
    """Return the type that holds all values of both types unchanged, or None. An unknown type
    (`VOID`) is no restriction."""
    if same_type(a, b) or a == VOID:
        return b
    if b == VOID:
        return a
    if isinstance(a, str) and isinstance(b, str):
        for family in _WIDENING:
            if a in family and b in family:
                return max(a, b, key=family.index)
        return _wider_decimal(a, b)
    if not is_alike(a, b):
        return None
    kinds = [wider(x, y) for x, y in zip(parts_of(a), parts_of(b), strict=True)]
    found = [kind for kind in kinds if kind is not None]
    return with_parts(b, found) if found and len(found) == len(kinds) else None


def widening(stream: str, column: str, kind: Kind, given: Kind) -> str:
    """Say how a column gets a type that also holds the values of another one; nothing if there is
    no such type, or only one within others."""
    wide = wider(kind, given)
    if not isinstance(wide, str) or wide == VOID:
        return ""
    name = column if column.isidentifier() else f"`{column.replace('`', '``')}`"
    return f"widen the column: {do('update_stream', stream=stream, widen_columns=f'{name} {wide}')}"


def is_alike(a: Kind, b: Kind) -> bool:
    """Return whether two types are lists, maps, or structs whose fields have the same names."""
    if isinstance(a, str) or isinstance(b, str) or a["type"] != b["type"]:
        return False
    names = [[one["name"] for one in kind["fields"]] for kind in (a, b) if kind["type"] == "struct"]
    return not names or names[0] == names[1]


def _wider_decimal(a: str, b: str) -> str | None:
    as_decimals = [f"decimal({WHOLE[one]},0)" if one in WHOLE else one for one in (a, b)]
    both = [_DECIMAL.fullmatch(one) for one in as_decimals]
    if None in both:
        return None
    digits = [(int(one[1]), int(one[2])) for one in both if one]
    scale = max(scale for _, scale in digits)
    precision = scale + max(precision - scale for precision, scale in digits)
    return f"decimal({precision},{scale})" if precision <= 38 else None


def plain(fields: list[Field]) -> list[Field]:
    """Return columns as a stream may have them: at any depth without metadata, except comments.

    Other metadata is removed because Spark evaluates some of it (EXISTS_DEFAULT), and whoever wrote
    the file chose it. Raises InvalidInput for names that are reserved, occur twice or cannot be
    stored, at any depth, for too many columns, for types that streams do not have, and for columns
    that are nested too deeply to be read.
    """
    check_user_columns([field["name"] for field in fields])
    if len(fields) > MOST_COLUMNS:
        raise InvalidInput(
            "columns_invalid",
            f"the rows have {len(fields):,} columns, but a stream may have at most "
            f"{MOST_COLUMNS:,}; put some of them into a map.",
        )
    for field in fields:
        check_field(field)
    return without_metadata(fields)


def without_metadata(fields: list[Field]) -> list[Field]:
    """Return the columns with comments as their only metadata, at any depth."""
    return [_without_metadata(field) for field in fields]


def _without_metadata(field: Field) -> Field:
    comment = (field.get("metadata") or {}).get("comment")
    kept: dict[str, object] = {"comment": comment} if isinstance(comment, str) else {}
    if (field.get("metadata") or {}).get(GUESSED) is True:
        kept[GUESSED] = True
    return {**field, "type": _each(field["type"], _without_metadata), "metadata": kept}


def check_field(field: Field, above: tuple[str, ...] = ()) -> Field:
    """Return a column whose name and type Weir's files may have, as Spark, Arrow and SQL do. Raises
    InvalidInput for another one. `above`: the names of what it is within."""
    path = (*above, field["name"])
    check_text("field", ".".join(path))
    check_text("the comment", str((field.get("metadata") or {}).get("comment", "")))
    if len(path) > DEEPEST:
        raise InvalidInput(
            "column_type_unsupported",
            f"column {path[0]!r} is nested more than {DEEPEST} levels deep, which Parquet readers "
            "refuse; append its inner part as text.",
        )
    _check_type(path, field["type"])
    if "__COLLATIONS" in (field.get("metadata") or {}):  # of its strings; Spark's name for them
        raise InvalidInput(
            "column_type_unsupported",
            f"column {path[0]!r} has the type string collate, which streams do not have, because "
            "it changes which keys are equal; cast it to a string with the collation utf8_binary.",
        )
    _each(field["type"], lambda part: check_field(part, path))
    return field


def _check_type(path: tuple[str, ...], kind: Kind) -> None:
    if isinstance(kind, dict) and kind["type"] in ("array", "map"):
        return
    if isinstance(kind, dict) and kind["type"] == "struct":
        names = [part["name"] for part in kind["fields"]]
        counted = Counter(name.lower() for name in names)
        if twice := [name for name in names if counted[name.lower()] > 1]:
            raise InvalidInput(
                "columns_invalid",
                f"column {path[0]!r} has the field {'.'.join((*path, twice[0]))!r} twice (upper "
                "and lower case count as the same); rename one of them.",
            )
        if names:
            return
    if not isinstance(kind, str) or not (kind in _TYPES or _DECIMAL.fullmatch(kind)):
        raise InvalidInput(
            "column_type_unsupported",
            f"column {path[0]!r} has the type {show(kind)}, which streams do not have, because "
            "Parquet, Arrow or SQL lacks it; cast it to a string, a number or a timestamp.",
        )


def _each(kind: Kind, change: Callable[[Field], Field]) -> Kind:
    """Return a type with `change` applied to each field in it, also within lists and maps."""
    if isinstance(kind, str):
        return kind
    if kind["type"] == "struct":
        return {**kind, "fields": [change(field) for field in kind["fields"]]}
    names = ("elementType",) if kind["type"] == "array" else ("keyType", "valueType")
    parts = zip(names, parts_of(kind), strict=False)
    return with_parts(kind, [change(new_field(name, part))["type"] for name, part in parts])


def same_type(a: Kind | None, b: Kind | None) -> bool:
    """Return whether two types in Spark's JSON form are equal, apart from which parts may
    be null.
    """
    return _strict(a) == _strict(b)


def _strict(kind: object) -> object:
    if isinstance(kind, dict):
        skip = {"nullable", "containsNull", "valueContainsNull", "metadata"}
        return {k: _strict(v) for k, v in kind.items() if k not in skip}
    if isinstance(kind, list):
        return [_strict(part) for part in kind]
    return kind


def show(kind: Kind) -> str:
    """Format a type for people: `struct<a: string>`."""
    if isinstance(kind, str):
        return kind
    inner = list(map(show, parts_of(kind)))
    if kind["type"] == "struct":
        fields = zip(kind["fields"], inner, strict=True)
        inner = [f"{field['name']}: {part}" for field, part in fields]
    elif not inner:
        return kind["type"]
    return f"{kind['type']}<{', '.join(inner)}>"
