"""Footers of Parquet files: the columns they give, and how hostile ones fail."""

import io
import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chance import random_for
from tests.raises import raises
from weir.controller.transactions import InputFile
from weir.errors import InvalidInput
from weir.inputs.files import Inputs
from weir.inputs.parquet_columns import parquet_fields
from weir.inputs.parquet_footer import WrongFooter, read_footer
from weir.inputs.parquet_types import columns_of_elements
from weir.kernel.text_options import TextOptions
from weir.model.schema import Field, show


def columns(folder: Path, *names: str) -> list[Field]:
    """The columns of files in a folder."""
    files = tuple(InputFile(name, 1) for name in names)
    return parquet_fields(Inputs(str(folder), files, "parquet", TextOptions(), ()))[0]


def written(folder: Path, name: str = "x.parquet", **given: pa.Array) -> str:
    pq.write_table(pa.table(given), folder / name)
    return name


KINDS: list[tuple[pa.DataType, str]] = [
    (pa.bool_(), "boolean"), (pa.int8(), "byte"), (pa.int16(), "short"), (pa.int32(), "integer"),
    (pa.int64(), "long"), (pa.uint8(), "short"), (pa.uint16(), "integer"), (pa.uint32(), "long"),
    (pa.uint64(), "decimal(20,0)"), (pa.float32(), "float"), (pa.float64(), "double"),
    (pa.string(), "string"), (pa.large_string(), "string"), (pa.string_view(), "string"),
    (pa.binary(), "binary"), (pa.binary(3), "binary"), (pa.large_binary(), "binary"),
    (pa.dictionary(pa.int8(), pa.string()), "string"), (pa.date32(), "date"),
    (pa.date64(), "date"), (pa.timestamp("s"), "timestamp_ntz"),
    (pa.timestamp("ms", "UTC"), "timestamp"), (pa.timestamp("us"), "timestamp_ntz"),
    (pa.timestamp("ns", "UTC"), "timestamp"), (pa.decimal32(5, 2), "decimal(5,2)"),
    (pa.decimal128(38, 10), "decimal(38,10)"), (pa.decimal256(20, 3), "decimal(20,3)"),
    (pa.list_(pa.timestamp("ns")), "array<timestamp_ntz>"),
    (pa.null(), "void"), (pa.uuid(), "string"), (pa.json_(), "string"),
    (pa.list_(pa.int64()), "array<long>"), (pa.list_(pa.int64(), 2), "array<long>"),
    (pa.large_list(pa.null()), "array<void>"), (pa.list_(pa.list_(pa.string())),
                                               "array<array<string>>"),
    (pa.struct({"a": pa.null(), "b": pa.list_(pa.int8())}), "struct<a: void, b: array<byte>>"),
    (pa.map_(pa.string(), pa.struct({"z": pa.date32()})), "map<string, struct<z: date>>"),
]  # fmt: skip


def test_the_types_of_columns_come_from_the_schema_of_the_file(tmp_path: Path) -> None:
    given = {f"c{i}": pa.array([], kind) for i, (kind, _) in enumerate(KINDS)}
    for version in ("1.0", "2.6"):
        pq.write_table(pa.table(given), tmp_path / "x.parquet", version=version)
        found = {one["name"]: show(one["type"]) for one in columns(tmp_path, "x.parquet")}
        wanted = {f"c{i}": kind for i, (_, kind) in enumerate(KINDS)}
        if version == "1.0":  # which has no 32 bits without a sign
            for i, (kind, _) in enumerate(KINDS):
                if kind == pa.uint32():
                    wanted[f"c{i}"] = "long"
        assert found == wanted
    pl.DataFrame({"n": [None], "l": [[None]], "u": pl.Series([1], dtype=pl.UInt64)}).write_parquet(
        tmp_path / "p.parquet"
    )
    found = {one["name"]: show(one["type"]) for one in columns(tmp_path, "p.parquet")}
    assert found == {"n": "void", "l": "array<void>", "u": "decimal(20,0)"}


@pytest.mark.parametrize(
    "kind",
    [pa.time32("ms"), pa.time64("us"), pa.time64("ns"), pa.float16(), pa.decimal256(40, 1),
     pa.list_(pa.time64("us")), pa.struct({"a": pa.float16()}),
     pa.map_(pa.string(), pa.decimal256(39, 0))],
)  # fmt: skip
def test_a_type_that_spark_lacks_is_refused_with_column_and_file(
    tmp_path: Path, kind: pa.DataType
) -> None:
    written(tmp_path, k=pa.array(["a"]), odd=pa.array([None], kind))
    with raises("column_type_unsupported 'odd' 'x.parquet'"):
        columns(tmp_path, "x.parquet")


def test_files_meet_in_the_wider_type_and_others_are_refused_with_both(tmp_path: Path) -> None:
    written(
        tmp_path, "1", n=pa.array([1], pa.int8()), x=pa.nulls(1), d=pa.array([1.5], pa.float32())
    )
    written(tmp_path, "2", n=pa.array([1], pa.int64()), x=pa.array(["a"]), d=pa.array([1.5]))
    written(tmp_path, "3", n=pa.array(["a"]))
    for names in (("1", "2"), ("2", "1"), ("2", "1", "1")):
        found = columns(tmp_path, *names)
        assert [one["type"] for one in found] == ["long", "string", "double"]
    with raises("column_type_differs 'n' string '3' byte '1'"):
        columns(tmp_path, "1", "3")


def test_metadata_of_the_writer_decides_nothing(tmp_path: Path) -> None:
    udt = '{"type":"struct","fields":[{"name":"k","nullable":true,"metadata":{},"type":'
    udt += '{"type":"udt","pyClass":"this.module","sqlType":"long"}}]}'
    table = pa.table({"k": pa.array([1])}).replace_schema_metadata(
        {"org.apache.spark.sql.parquet.row.metadata": udt, "pandas": "not json",
         "ARROW:schema": "not an Arrow schema"}
    )  # fmt: skip
    pq.write_table(table, tmp_path / "x.parquet", store_schema=False)
    assert [one["type"] for one in columns(tmp_path, "x.parquet")] == ["long"]


def test_encrypted_columns_are_said_in_a_sentence(tmp_path: Path) -> None:
    import base64

    import pyarrow.parquet.encryption as pe

    class Kms(pe.KmsClient):  # type: ignore[misc]
        def wrap_key(self, key: bytes, master: str) -> bytes:
            return base64.b64encode(key)

        def unwrap_key(self, key: bytes, master: str) -> bytes:
            return base64.b64decode(key)

    for plain in (True, False):
        factory = pe.CryptoFactory(lambda _: Kms())
        properties = factory.file_encryption_properties(
            pe.KmsConnectionConfig(),
            pe.EncryptionConfiguration(
                footer_key="f", column_keys={"c": ["n"]}, plaintext_footer=plain
            ),
        )
        table = pa.table({"k": ["a"], "n": [1]})
        pq.write_table(table, tmp_path / "x.parquet", encryption_properties=properties)
        with raises("file_invalid 'x.parquet' encrypted without"):
            columns(tmp_path, "x.parquet")


def _varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def _file(footer: bytes) -> bytes:
    return b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1"


ROOT = b"\x48\x01r\x15\x02\x00"  # an element with the name r and one child
HOSTILE = {
    "an endless list of elements": b"\x29\xfc" + _varint(1 << 60),
    "a list that is longer than the file": b"\x29\xfc" + _varint(1 << 20),
    "many elements of no size": b"\x29\xfc" + _varint(200_000) + bytes(200_000),
    "a name that is longer than the file": b"\x29\x1c\x48" + _varint(1 << 31) + b"r",
    "a number without an end": b"\x15" + b"\xff" * 40,
    "lists within lists": b"\x59" + b"\x19" * 100_000,
    "structs within structs": b"\x5c" + b"\x1c" * 100_000,
    "children without an end": b"\x29\x1c\x48\x01r\x15" + _varint(1 << 31) + b"\x00",
    "groups within groups": b"\x29\xfc" + _varint(10_001) + ROOT * 10_001,
    "a name that is not UTF-8": b"\x29\x1c\x48\x01\xff\x15\x02\x00",
    "an element without a name": b"\x29\x2c" + ROOT + b"\x15\x00\x00",
    "an unknown physical type": b"\x29\x2c" + ROOT + b"\x15\x7e\x38\x01a\x00",
    "nothing": b"",
    "no elements": b"\x29\x0c\x00",
    "a list of another type": b"\x29\x18\x01a",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_footer_is_refused_in_a_sentence(tmp_path: Path, what: str) -> None:
    (tmp_path / "x.parquet").write_bytes(_file(HOSTILE[what]))
    with pytest.raises(InvalidInput) as refused:
        columns(tmp_path, "x.parquet")
    assert refused.value.code in ("file_invalid", "column_type_unsupported")
    assert "\n" not in refused.value.sentence


def mutated(data: bytes, chance: random.Random) -> bytes:
    """A file with a few bytes of its footer changed, cut out, or repeated."""
    length = int.from_bytes(data[-8:-4], "little")
    footer = bytearray(data[-8 - length : -8])
    for _ in range(chance.choice([1, 1, 1, 2, 5, 50])):
        at = chance.randrange(len(footer))
        how = chance.randrange(5)
        if how == 0:
            footer[at] ^= 1 << chance.randrange(8)
        elif how == 1:
            footer[at] = chance.choice([0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        elif how == 2:
            del footer[at : at + chance.randrange(1, 40)]
        elif how == 3:
            footer[at:at] = bytes([0xFF] * chance.randrange(1, 10) + [chance.randrange(128)])
        else:
            footer[at:at] = footer[at : at + chance.randrange(1, 400)]
        if not footer:
            break
    return data[: -8 - length] + bytes(footer) + len(footer).to_bytes(4, "little") + b"PAR1"


def example() -> bytes:
    """A file with columns of all types and several row groups."""
    given: dict[str, Any] = {
        f"c{i}": pa.array([None] * 4, kind) for i, (kind, _) in enumerate(KINDS)
    }
    out = io.BytesIO()
    pq.write_table(pa.table(given), out, row_group_size=2)
    return out.getvalue()


def check_mutated(data: bytes) -> None:
    """Any footer gives columns or a sentence."""
    try:
        footer = read_footer(pa.BufferReader(data))
        columns_of_elements("x", footer.elements)
    except (WrongFooter, InvalidInput):
        pass


def test_whatever_bytes_a_footer_has_it_gives_columns_or_a_sentence() -> None:
    chance, data = random_for("footers"), example()
    for _ in range(150):
        check_mutated(mutated(data, chance))
