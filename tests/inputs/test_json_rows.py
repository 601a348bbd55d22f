"""Json files as rows of values: each exactly what the file says, or a malformed row."""

import datetime as dt
import json
import math
import tempfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from tests.inputs import json_model
from tests.kernel.texts import DECLARED
from tests.raises import raises
from weir.inputs import json_pieces
from weir.inputs.files import ROW_MASK, find_inputs
from weir.inputs.json_reader import read_json, written
from weir.inputs.values import here, values_of
from weir.kernel.rejected import MALFORMED
from weir.kernel.text_options import TextOptions
from weir.model.schema import SEQ, Field, Kind, Map, new_field, show


def struct(**kinds: Kind) -> Kind:
    return {"type": "struct", "fields": [new_field(name, kind) for name, kind in kinds.items()]}


def array(of: Kind) -> Kind:
    return {"type": "array", "elementType": of, "containsNull": True}


class Found:
    """What a json file has: columns, events, what is malformed, ranks of all, and what is said."""

    def __init__(
        self, content: str | bytes | list[str], known: list[Field] | None = None,
        most: int = 1 << 28, *, quarantine: bool = True, **how: Any,
    ) -> None:  # fmt: skip
        text = "\n".join(content) if isinstance(content, list) else content
        data = text if isinstance(text, bytes) else text.encode(errors="surrogatepass")
        self.said: list[str] = []
        with tempfile.TemporaryDirectory() as root:
            Path(root, "x.json").write_bytes(data)
            inputs = find_inputs(["x.json"], [root], "json", TextOptions(**how))
            values = values_of(inputs, known, self.said.append, here, most, quarantine=quarantine)
            tables = [table for piece in values.pieces for table in values.tables(piece)]
        self.fields = values.fields
        self.kinds = {one["name"]: show(one["type"]) for one in values.fields}
        rows = [row for table in tables for row in table.to_pylist()]
        rows.sort(key=lambda row: row[SEQ])
        self.ranks = [row.pop(SEQ) & ROW_MASK for row in rows]
        marks = [row.pop(MALFORMED) for row in rows]
        self.events = [row for row, mark in zip(rows, marks, strict=True) if mark is None]
        self.malformed = [one["row"] for one in marks if one]
        self.faults = {one["row"]: tuple(one.values())[1:] for one in marks if one}
        self.is_event = [one is None for one in marks]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Found) and repr(vars(self)) == repr(vars(other))


LINES: dict[str, list[tuple[str, int | None]]] = {
    '{"k":"a","n":1}{"k":"b","n":2}': [("a", 1), ("b", 2)],
    '{"k":"a} {","n":1} \t {"k":"]["}': [("a} {", 1), ("][", None)],
    '{"k":"a\\\\"}{"k":"\\"}{"}': [("a\\", None), ('"}{', None)],
    '[{"k":"a","n":1},{"k":"b"}]': [("a", 1), ("b", None)],
    '[{"k":"a"}][{"k":"b"}] {"k":"c"}': [("a", None), ("b", None), ("c", None)],
    '{"k":"a"},{"k":"b"}': [("a", None), ("b", None)],
    '\ufeff{"k":"a","n":3}': [("a", 3)],
    ' {"k":"a", "n" : null }\t': [("a", None)],
    '{"k":"a\\u0000\u2028"}': [("a\0\u2028", None)],
    "": [],
    " \t": [],
    "[]": [],
}
COLUMNS = [new_field("k", "string"), new_field("n", "long"), new_field("v", "double"),
           new_field("o", struct(x="long"))]  # fmt: skip
WRONG = [
    '{"k":"a"} x', '{"k":"a"}}', '{"k":"a"}],"v":[{"k":"b"}', '{"k":"a"} 5', '{"k":"a"},',
    '{"k":"a","n":1', "5", '"text"', "null", '[{"k":"a"},null]', '[{"k":"a"},5]', "{", "[",
    '[[{"k":"a"}]]', '{"k":"a","k":"b"}', '{"k":"a","o":{"x":1,"x":2}}', '{"k":"\\ud800"}',
    '{"\\udc00":1}', "{'k':'a'}", '{"k":"a","":1}', '{"k":"a","o":{"" : null}}', '{"k":"a\tb"}',
    '{"k":"a","n":01}', '{"k":"a","n":+1}', '{"k":"a","n":.5}', '{"k":"a","n":-}',
]  # fmt: skip
# Lines with a value that its column does not keep: the column, the text, the type.
FAULTS = {
    '{"k":"a","v":9007199254740993}': ("v", "9007199254740993", "double"),
    '{"k":"a","v":12345678.12345678901}': ("v", "12345678.12345678901", "double"),
    '{"k":"a","v":1e400}': ("v", "1e400", "double"),
    '{"k":"a","v":"1.5"}': ("v", "1.5", "double"),
    '{"k":"a","n":1.5}': ("n", "1.5", "long"),
    '{"k":"a","n":-0}': ("n", "-0", "long"),
    '{"k":"a","n":9223372036854775808}': ("n", "9223372036854775808", "long"),
    '{"k":"a","n":"1"}': ("n", "1", "long"),
    '{"k":"a","n":{"b": [1.0]}}': ("n", '{"b":[1.0]}', "long"),
    '{"k":"a","o":7}': ("o", "7", "struct<x: long>"),
    '{"k":"a","o":{"x":true},"v":"x"}': ("o.x", "true", "long"),
    '{"k":"a","o":{"x":true}}': ("o.x", "true", "long"),
    '[{"k":"a"},{"k":"b","n":true}]': ("n", "true", "long"),
}  # fmt: skip


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("most", [1 << 20, 20, 1])
def test_all_objects_of_a_line_are_events_or_the_line_is_malformed(end: str, most: int) -> None:
    many = "".join(json.dumps({"k": f"k{i}", "n": i}) for i in range(300))
    lines = [*LINES, *WRONG, *FAULTS, many, '{"k":"ok","v":0.30000000000000004}']
    found = Found(end.join(lines), COLUMNS, most)
    wanted = [event for some in LINES.values() for event in some]
    wanted += [(f"k{i}", i) for i in range(300)]
    assert found.malformed == [*WRONG, *FAULTS]
    assert [(row["k"], row["n"]) for row in found.events] == [*wanted, ("ok", None)]
    assert found.events[-1]["v"] == 0.1 + 0.2
    assert {line: found.faults[line] for line in FAULTS} == FAULTS


def test_each_object_and_each_malformed_line_has_a_number() -> None:
    lines = ['{"k":"a"}', "x", '[{"k":"b"},{"k":"c"}]', "", '[{"k":"d"},{"k":"e","n":""}]',
             '{"k":"f"}{"k":', '{"k":"g"}']  # fmt: skip
    for most in (1 << 20, 3):
        found = Found(lines, COLUMNS, most)
        assert [row["k"] for row in found.events] == ["a", "b", "c", "f", "g"]
        assert found.malformed == ["x", '[{"k":"d"},{"k":"e","n":""}]', '{"k":']
        assert found.ranks == [0, 1, 2, 3, 4, 6, 7, 8]
        assert found.is_event == [True, False, True, True, False, True, False, True]


def test_values_are_kept_as_they_are_written() -> None:
    found = Found([
        '{"k":"a","mixed":1.10,"long":12345678.12345678901,"x":[1.5,2],"o":{"d":0.1},"e":null}',
        '{"k":"b","mixed":"1.10","long":1,"x":[],"o":{"d":1e-7},"e":null}',
        '{"k":"c","mixed":12345678.5,"long":0.5,"x":null,"o":null}',
        '{"k":"d","mixed":true,"y":NaN}', '{"k":"e","mixed":{"z" : [1.10, -0, "ä\\u0009"]},"y":1}',
    ])  # fmt: skip
    assert found.kinds == {
        "e": "void", "k": "string", "long": "string", "mixed": "string", "o": "struct<d: double>",
        "x": "array<double>", "y": "double",
    }  # fmt: skip
    texts = ["1.10", "1.10", "12345678.5", "true", '{"z":[1.10,-0,"ä\\t"]}']
    assert [row["mixed"] for row in found.events] == texts
    assert [row["long"] for row in found.events[:3]] == ["12345678.12345678901", "1", "0.5"]
    assert [row["x"] for row in found.events[:3]] == [[1.5, 2.0], [], None]
    assert [row["o"] and row["o"]["d"] for row in found.events[:3]] == [0.1, 1e-7, None]
    assert math.isnan(found.events[3]["y"])
    assert any("digits than a double keeps" in line for line in found.said)
    assert any("e: left open" in line for line in found.said)
    guessed = {one["name"] for one in found.fields if one["metadata"].get("guessed")}
    assert guessed == {"o", "x", "y"}


# What a column has in some objects, and the type that is taken.
GUESSED: list[tuple[list[str], str]] = [
    (["1", "-5"], "long"),
    (["1", "null", "9223372036854775807"], "long"),
    (["1", "9223372036854775808"], "decimal(20,0)"),
    (["12345678901234567890123", "1"], "decimal(23,0)"),
    (["1" * 39], "string"),
    (["1" + "0" * 40], "double"),
    (["1", "1.5"], "double"),
    (["-0", "1"], "double"),
    (["1", "1e3"], "double"),
    (["NaN", "-Infinity", "1"], "double"),
    (["9007199254740993", "1.5"], "string"),
    (["9007199254740992", "1.5"], "double"),
    (["1e400"], "string"),
    (["5e-324"], "double"),
    (["1", "true"], "string"),
    (["true", "false", "null"], "boolean"),
    (['"2026-01-01"'], "string"),
    (['""', "5"], "long"),
    (['""', "null"], "string"),
    (["null"], "void"),
    (["1", '"x"', '{"a":1}', "[1]"], "string"),
    (["[]", "null"], "array<string>"),
    (["[]", "[1, null]", "[2.5]"], "array<double>"),
    (["[[1]]", "[[], null]"], "array<array<long>>"),
    (["[1]", '["x"]'], "array<string>"),
    (['{"b":1}', '{"a":null}', "{}", "null"], "struct<a: string, b: long>"),
    (['{"a":{"b":[{"c":true}]}}'], "struct<a: struct<b: array<struct<c: boolean>>>>"),
    (['{"a":{}, "b":1}'], "struct<b: long>"),
    (['{"a":9007199254740993.5, "b":0.5}'], "struct<a: string, b: string>"),
]


@pytest.mark.parametrize(("values", "kind"), GUESSED)
def test_the_type_of_a_column_is_that_of_all_its_values(values: list[str], kind: str) -> None:
    lines = [f'{{"k":1,"v":{one}}}' for one in values]
    for most in (1 << 20, 1):
        assert Found(lines, most=most).kinds == {"k": "long", "v": kind}


def test_columns_have_the_names_of_the_file_in_their_order() -> None:
    found = Found(['{"id":1,"a.b":2,"_corrupt_record":"x"," ":true}'])
    assert found.events == [{" ": True, "_corrupt_record": "x", "a.b": 2, "id": 1}]
    assert list(found.kinds) == [" ", "_corrupt_record", "a.b", "id"]


def test_objects_without_a_field_show_no_column() -> None:
    assert Found(['{"k":1,"v":{}}', '{"w":[{}]}']).kinds == {"k": "long"}
    found = Found(['{"k":"a","n":{}}'], COLUMNS)
    assert found.faults == {'{"k":"a","n":{}}': ("n", "{}", "long")}


def test_declared_texts_are_no_other_day_and_lose_no_digit() -> None:
    cells = [
        ("at", "08:15"), ("at", "2026-01-01T00:00:00.1234567Z"), ("at", 1700000000),
        ("day", "2026-02-30"), ("p", 1.005), ("p", "1.5"), ("f", 16777217), ("flag", "true"),
        ("here", "2026-01-01T00:00:00+01:00"), ("v", "1.5"), ("i", 2147483648),
    ]  # fmt: skip
    lines = [json.dumps({"k": "x", name: value}) for name, value in cells]
    lines.append('{"k":"a","at":"2026-01-01T00:00:00+02:00","p":1.5,"day":"2026-01-01","v":1.50}')
    found = Found(lines, DECLARED)
    assert [found.faults[line][:2] for line in lines[:-1]] == [(n, str(v)) for n, v in cells]
    [event] = found.events
    assert (event["p"], event["v"]) == (Decimal("1.50"), 1.5)
    assert event["at"] == dt.datetime(2025, 12, 31, 22, tzinfo=dt.UTC)


def test_times_have_the_zone_and_the_formats_of_the_append() -> None:
    lines = ['{"k":"a","at":"31.12.2025 23:30","day":"31.12.2025"}',
             '{"k":"b","at":"29.03.2026 02:30"}']  # fmt: skip
    how: dict[str, Any] = {"time_zone": "Europe/Berlin", "timestamp_format": "dd.MM.yyyy HH:mm",
           "date_format": "dd.MM.yyyy"}  # fmt: skip
    found = Found(lines, DECLARED, **how)
    [event] = found.events
    assert event["at"] == dt.datetime(2025, 12, 31, 22, 30, tzinfo=dt.UTC)
    assert event["day"] == dt.date(2025, 12, 31)
    assert found.malformed == lines[1:]
    with raises("argument_invalid 'DD.MM.YYYY'"):
        Found(lines, date_format="DD.MM.YYYY")


MAP: Map = {"type": "map", "keyType": "string", "valueType": "long", "valueContainsNull": True}


def test_maps_and_structs_come_as_they_are_declared() -> None:
    kinds = [new_field("m", MAP), new_field("s", struct(a="string", b=array(struct(c="long"))))]
    found = Found(['{"m":{"x":1,"y":null},"s":{"b":[{"c":1},null,{}]}}', '{"m":{},"s":{}}',
                   '{"m":null}', '{"m":{"x":"1"}}', '{"m":[1]}', '{"s":{"b":[{"c":1},{"c":"x"}]}}',
                   '{"s":{"a":1.0,"b":null}}'], kinds)  # fmt: skip
    assert found.events == [
        {"m": [("x", 1), ("y", None)], "s": {"a": None, "b": [{"c": 1}, None, {"c": None}]}},
        {"m": [], "s": {"a": None, "b": None}}, {"m": None, "s": None},
        {"m": None, "s": {"a": "1.0", "b": None}},
    ]  # fmt: skip
    assert list(found.faults.values()) == [
        ("m[]", "1", "long"), ("m", "[1]", "map<string, long>"), ("s.b[].c", "x", "long"),
    ]  # fmt: skip


def test_a_field_that_the_column_lacks_refuses_the_file_or_its_row() -> None:
    known = [new_field("s", struct(k="long")), new_field("l", array(struct(k="long")))]
    lines = ['{"s":{"k":1,"x":2}}', '{"s":{"k":3,"x":null},"l":[{"k":1}]}', '{"l":[{"k":1,"y":0}]}']
    with raises("column_unknown 's.x' is not a field of column 's'"):
        Found(lines[:2], known, quarantine=False)
    with raises("column_unknown 'l[].y' is not a field of column 'l'"):
        Found(lines[2:], known, quarantine=False)
    found = Found(lines, known)
    assert found.malformed == [lines[0], lines[2]]
    assert found.events == [{"l": [{"k": 1}], "s": {"k": 3}}]


@pytest.mark.parametrize("kind", ["variant", {**MAP, "keyType": "integer"}, struct(a="variant")])
def test_a_column_whose_values_json_lacks_is_refused_by_name(kind: Any) -> None:
    with raises("column_type_unsupported 'v' json Parquet"):
        Found(['{"v":{}, "k":1}', '{"v":{"1":1}}'], [new_field("v", kind)])


def test_what_is_no_text_is_a_malformed_row_that_can_be_stored() -> None:
    lines = [b'{"k":"a"}', b'{"k":"caf\xe9"}{"k":"x"}', b'{"k":"n\0"}', b"\xff",
             b'{"k":"\xc3\xa9"}']  # fmt: skip
    found = Found(b"\n".join(lines))
    assert [row["k"] for row in found.events] == ["a", "é"]
    shown = ['{"k":"caf\ufffd"}{"k":"x"}', '{"k":"n\ufffd"}', "\ufffd"]
    assert found.malformed == shown


def test_a_line_that_is_too_long_is_a_malformed_row() -> None:
    long = '{"k":"' + "x" * (16 << 20) + '"}'
    found = Found(['{"k":"a"}', long, '{"k":"b"}'], most=5 << 20)
    assert [row["k"] for row in found.events] == ["a", "b"]
    assert found.malformed == [long[: 16 << 20]]
    with raises(f"file_invalid line {len(long):,}"):
        Found(long)


def test_a_line_that_no_process_keeps_refuses_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "CHUNK", 10)
    monkeypatch.setattr(json_pieces, "LONGEST", 100)
    with raises("file_invalid line 'x.json' 100"):
        Found(['{"k":"a"}', "x" * 200])


@pytest.mark.parametrize("sign", ["{}", "[]"])
def test_what_is_nested_very_deeply_is_a_malformed_row_and_never_a_crash(sign: str) -> None:
    def deep(levels: int) -> str:
        begin = '{"a":' if sign == "{}" else "["
        return '{"v":' + begin * (levels - 1) + "1" + sign[1] * (levels - 1) + "}"

    lines = ['{"v":1}', deep(900), deep(100_000), deep(240), deep(251)]
    found = Found(lines, [new_field("v", "string")])
    assert [row["v"] for row in found.events] == ["1", lines[3][5:-1]]
    assert found.malformed == [lines[1], lines[2], lines[4]]
    with raises("column_type_unsupported 'v' 40 deep"):
        Found(lines[3])
    with raises("columns_invalid 'x.json'"):
        Found(lines[1])
    flat = json.dumps([{"v": [{"a": 1}]}] * 400)
    assert len(Found(flat).events) == 400


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "file_invalid 'x.json' empty"),
        ("\n \n", "file_invalid 'x.json' empty"),
        ('{\n  "k": 1\n}\n', "columns_invalid 'x.json' '{'"),
        ("{}\n", "columns_invalid 'x.json' '{}'"),
        ('{"o":{}}\n', "columns_invalid 'x.json'"),
        (b'{"k":"caf\xe9"}\n', "file_invalid 1 'x.json' UTF-8"),
        ('{"k":"a\0"}\n', "file_invalid 1 'x.json' file"),
        ('{"k":1,"k":2}\n', "columns_invalid 'k' twice"),
        ('{"v":1}\n{"V":2}\n', "columns_invalid 'V' case"),
        ('{"v":{"a":1,"A":2}}\n', "columns_invalid 'v.A' twice"),
        ('{"_weir_seq":1}\n', "columns_invalid '_weir_seq'"),
        (json.dumps({f"k{i}": i for i in range(10_001)}), "columns_invalid 10,001 some"),
    ],
)
def test_a_file_that_shows_no_columns_is_refused_with_the_reason(
    content: str | bytes, says: str
) -> None:
    with raises(says):
        Found(content)


def test_a_file_without_objects_has_the_columns_of_the_stream() -> None:
    found = Found("\n", COLUMNS)
    assert (found.kinds, found.events) == ({one["name"]: show(one["type"]) for one in COLUMNS}, [])


def test_a_compressed_file_is_one_piece() -> None:
    text = "\n".join(json.dumps({"k": i}) for i in range(1_000)).encode()
    packed = pa.Codec("gzip").compress(text, asbytes=True)
    assert Found(packed, most=10) == Found(text)


def by_pieces(content: str, known: list[Field], most: int, chunk: int) -> Found:
    """A file that is read in small pieces, and these in small parts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_pieces, "CHUNK", chunk)
        return Found(content, known, most)


def check_model(random: Any, read: Callable[..., Found] = by_pieces) -> None:
    fields = json_model.some_fields(random)
    lines = [json_model.some_line(random, fields) for _ in range(random.randrange(1, 30))]
    ends = random.choice([["\n"], ["\r\n"], ["\r"], ["\n", "\r\n", "\r", "\n\n"]])
    content = "".join(line + random.choice(ends) for line in lines)
    most, chunk = random.choice([1, 7, 100, 1 << 20]), random.choice([1, 9, 64, 1 << 20])
    events, malformed = json_model.rows_of([one.removeprefix("\ufeff") for one in lines], fields)
    found = read(content, fields, most, chunk)
    names = [one["name"] for one in fields if one["name"] in found.kinds]
    assert found.malformed == malformed
    assert not any(row[name] for row in events for name in row if name not in names)
    assert repr_of(found.events, names) == repr_of(events, names)
    assert found.ranks == sorted(set(found.ranks))
    assert found == Found(content, fields)


def repr_of(rows: list[dict[str, Any]], names: list[str]) -> list[str]:
    """Rows that can be compared: decimals without zeros at their end."""

    def shown(value: Any) -> Any:
        if isinstance(value, Decimal):
            return f"{value:.2f}".replace("-0.00", "0.00")
        if isinstance(value, dict):
            return {name: shown(one) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [shown(one) for one in value]
        return value

    return [repr({name: shown(row[name]) for name in names}) for row in rows]


@pytest.mark.parametrize("case", range(cases(320)))
def test_random_lines_become_what_a_small_model_says(case: int) -> None:
    check_model(random_for(case))


def check_guess(random: Any) -> None:
    fields = json_model.some_fields(random)
    lines = [json_model.some_line(random, fields) for _ in range(random.randrange(1, 30))]
    wanted, malformed = json_model.rows_of([one.removeprefix("\ufeff") for one in lines], [])
    found = Found(['{"first":1}', *lines])
    # An empty text shows no type, and is no value of another type than text.
    of_texts = [row for row in found.malformed if found.faults[row][1] == ""]
    assert [row for row in found.malformed if row not in of_texts] == malformed
    assert of_texts or len(found.events) == len(wanted) + 1


@pytest.mark.parametrize("case", range(cases(160)))
def test_a_type_that_is_guessed_keeps_every_value(case: int) -> None:
    check_guess(random_for("guess", case))


@pytest.mark.parametrize("case", range(cases(160)))
def test_what_is_written_in_a_column_of_texts_is_the_same_json(case: int) -> None:
    random = random_for(case)
    value = json_model.some(random, {"type": "struct", "fields": json_model.some_fields(random)})
    text = json_model.written(random, {"v": value})
    [row] = read_json(text.encode()).rows
    assert repr(json.loads(written(row["v"]))) == repr(json.loads(text)["v"])
