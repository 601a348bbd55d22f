"""What was in a text file is in the stream: each value exactly, or malformed with its column, its
text and the type that it lacks."""

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.kernel.texts import DECLARED, GUESSED, NOT_KEPT
from tests.raises import raises
from tests.spark.installation import PLACE, Installation
from weir.model.names import StreamName


def put(weir: Installation, name: str, content: str | bytes) -> str:
    """Write a file below the input root."""
    data = content if isinstance(content, bytes) else content.encode()
    (Path(weir.input) / name).write_bytes(data)
    return name


def events(weir: Installation, stream: StreamName) -> list[tuple[Any, ...]]:
    """Return the events in write order, without their places."""
    return [tuple(row) for row in weir.frame(stream, "stream").drop(*PLACE).collect()]


def rejected(weir: Installation, stream: StreamName) -> list[tuple[Any, ...]]:
    """Return the rejected rows: column, text, type and row."""
    frame = weir.read(stream.rejected).sort_values("place")
    return [
        tuple(None if pd.isna(one) else one for one in row)
        for row in frame[["column", "text", "type", "row"]].itertuples(index=False)
    ]


def test_a_type_is_taken_if_each_text_comes_back_from_its_value(weir: Installation) -> None:
    names = list(GUESSED)
    lines = [",".join(["k", *names])]
    lines += [",".join(["a", *[GUESSED[name][1][i] for name in names]]) for i in range(3)]
    stream = weir.create(segments=1)
    weir.ingest(stream, [put(weir, "many.csv", "\n".join(lines) + "\n")], "csv")
    kinds = dict(weir.frame(stream).dtypes)
    wanted = {name: kind.replace("long", "bigint") for name, (kind, _) in GUESSED.items()}
    assert {name: kinds[name] for name in names} == wanted
    found = weir.frame(stream, "stream").collect()
    for name, (kind, texts) in GUESSED.items():
        values = [row[name] for row in found]
        if kind == "string":
            assert values == texts, name
        elif kind == "double":
            assert [repr(v) for v in values] == [repr(float(t)) for t in texts], name
        elif kind == "long":
            assert values == [int(t) for t in texts], name
        elif kind.startswith("decimal"):
            assert [format(v, "f") for v in values] == texts, name
        elif kind == "date":
            assert [v.isoformat() for v in values] == texts, name
        elif kind == "timestamp":
            parsed = [dt.datetime.fromisoformat(t.removesuffix("Z")) for t in texts]
            assert values == parsed, name
    said = {line.strip().split(":")[0]: line for line in weir.said if line.startswith("  ")}
    assert set(names) < set(said)
    assert "3.10 would become 3.1 as a number" in said["version"]
    assert "12D would become 12 as a number" in said["seat"]
    assert "without a zone, read as UTC" in said["at"]
    assert "a time without a day" in said["clock"]


@pytest.mark.release
def test_later_rows_than_the_first_decide_too_and_an_open_column_gets_its_type_when_one_comes(
    weir: Installation,
) -> None:
    rows = [f"a,{i},{i}.5,," for i in range(2_500)] + ["b,x,3.10,,", "c,,,,"]
    stream = weir.create(segments=1)
    weir.ingest(stream, [put(weir, "1.csv", "k,n,v,later,never\n" + "\n".join(rows) + "\n")], "csv")
    assert weir.frame(stream).dtypes[:3] == [("k", "string"), ("n", "string"), ("v", "string")]
    assert "later" not in weir.frame(stream).columns
    assert any("later: left open" in line for line in weir.said)
    weir.ingest(stream, [put(weir, "2.csv", "k,n,v,later,never\nd,1,2,7,\n")], "csv")
    assert dict(weir.frame(stream).dtypes)["later"] == "bigint"
    assert events(weir, stream)[-2:] == [("c", None, None, None), ("d", "1", "2", 7)]
    weir.ingest(stream, [put(weir, "3.json", '{"k":"e","later":null,"never":null}\n')], "json")
    assert events(weir, stream)[-1] == ("e", None, None, None)


def test_values_of_later_files_are_kept_or_named_with_column_text_and_type(
    weir: Installation,
) -> None:
    first = "k,n,v,p,at,flag\na,90210,3.9,1.50,2026-01-01 00:00:00,true\n"
    stream = weir.create(segments=1, on_bad_rows="quarantine")
    weir.ingest(stream, [put(weir, "first.csv", first)], "csv")
    wrong = [("n", "00501", "long"), ("n", "+5", "long"), ("n", " 5", "long"), ("n", "-0", "long"),
             ("n", "1e3", "long"), ("v", "3.10", "double"), ("v", "12D", "double"),
             ("v", "9007199254740993", "double"), ("v", "1e400", "double"),
             ("p", "1.5", "decimal(18,2)"), ("p", "1.005", "decimal(18,2)"),
             ("at", "08:15", "timestamp"), ("at", "2026-02-30 00:00:00", "timestamp"),
             ("at", "2026-01-01 00:00:00.1234567", "timestamp"),
             ("flag", "TRUE", "boolean")]  # fmt: skip
    good = {"k": "x", "n": "1", "v": "0.5", "p": "2.00", "at": "2026-01-02 00:00:00", "flag": ""}
    rows = [{**good, column: text} for column, text, _ in wrong]
    lines = [",".join(row.values()) for row in [good, *rows]]
    header = "k,n,v,p,at,flag\n"
    done = weir.ingest(stream, [put(weir, "2.csv", header + "\n".join(lines) + "\n")], "csv")
    assert (done.events, done.rejected) == (1, len(wrong))
    assert [row[:3] for row in rejected(weir, stream)] == wrong
    assert [row[3] for row in rejected(weir, stream)] == lines[1:]

    strict = weir.create("s/strict", segments=1)
    weir.ingest(strict, ["first.csv"], "csv", again="strict")
    with raises("bad_rows 15 '2.csv' 2 column 'n' '00501' long leading zeros on_bad_rows"):
        weir.ingest(strict, ["2.csv"], "csv", again="strict")


@pytest.mark.release
def test_a_declared_type_keeps_each_number_that_says_the_same(weir: Installation) -> None:
    stream = weir.create(segments=1, on_bad_rows="quarantine", fields=DECLARED)
    good = ["a", "1.50", "0.1", "1.5", "2026-01-01T00:00:00+02:00", "2026-01-01 00:00:00",
            "2026-01-01", "TRUE", "7"]  # fmt: skip
    names = [one["name"] for one in DECLARED]
    lines = [",".join(names), ";".join(good)]
    cells = [(name, text) for name, texts in NOT_KEPT.items() for text in texts]
    for name, text in cells:
        lines.append(";".join(text if n == name else g for n, g in zip(names, good, strict=True)))
    lines[0] = ";".join(names)
    put(weir, "declared.csv", "\n".join(lines) + "\n")
    done = weir.ingest(stream, ["declared.csv"], "csv", separator=";")
    assert [row[:2] for row in rejected(weir, stream)] == cells
    assert (done.events, done.rejected) == (1, len(cells))
    at = dt.datetime(2025, 12, 31, 22)
    assert events(weir, stream) == [
        ("a", 1.5, pytest.approx(0.1), Decimal("1.50"), at, dt.datetime(2026, 1, 1),
         dt.date(2026, 1, 1), True, 7)
    ]  # fmt: skip


@pytest.mark.release
def test_null_and_an_empty_text_in_quotes_are_two_values(weir: Installation) -> None:
    stream = weir.create(segments=1)
    put(weir, "empty.csv", 'k,s,n\na,"",1\nb,,""\nc,x,\n')
    weir.ingest(stream, ["empty.csv"], "csv")
    assert events(weir, stream) == [("a", "", 1), ("b", None, None), ("c", "x", None)]


@pytest.mark.release
def test_csv_is_read_as_its_options_say(weir: Installation) -> None:
    written = (
        "Auszug vom 1.1.2026\n\n# erzeugt\n"
        "'Kunde'|Betrag|Menge|Tag|Zeit|Notiz\n"
        "a|1.234,50|1.000|31.12.2025|31.12.2025 23:30|'10 € \\'bar\\''\n"
        "# Mitte\n"
        "b|-0,05|7|01.01.2026|29.03.2026 02:30|'größer'\n"
    )
    options: dict[str, Any] = {
        "separator": "|", "quote": "'", "escape": "\\", "comment": "#", "skip_lines": 2,
        "encoding": "windows-1252", "decimal": ",", "thousands": ".", "date_format": "dd.MM.yyyy",
        "timestamp_format": "dd.MM.yyyy HH:mm", "time_zone": "Europe/Berlin",
    }  # fmt: skip
    put(weir, "german.csv", written.encode("cp1252"))
    stream = weir.create(key="Kunde", segments=1)
    weir.ingest(stream, ["german.csv"], "csv", **options)
    kinds = dict(weir.frame(stream).dtypes)
    # At 02:30 the clocks of Berlin were moved to 03:30, so the time does not come back.
    assert [kinds[n] for n in ("Betrag", "Menge", "Tag", "Zeit")] == [
        "decimal(18,2)", "bigint", "date", "string",
    ]  # fmt: skip
    one, other = events(weir, stream)
    assert one == ("a", Decimal("1234.50"), 1000, dt.date(2025, 12, 31), "31.12.2025 23:30",
                   "10 € 'bar'")  # fmt: skip
    assert other[1:4] == (Decimal("-0.05"), 7, dt.date(2026, 1, 1))
    with raises("encoding_wrong 'german.csv' UTF-8 windows-1252"):
        weir.ingest(weir.create("s/utf", key="Kunde"), ["german.csv"], "csv", separator="|",
                    skip_lines=2, comment="#")  # fmt: skip
    put(weir, "winter.csv", "k,at\na,2025-12-31 23:30:00\nb,2025-07-01 12:00:00\n")
    berlin = weir.create("s/berlin", segments=1)
    weir.ingest(berlin, ["winter.csv"], "csv", time_zone="Europe/Berlin")
    assert [at for _, at in events(weir, berlin)] == [
        dt.datetime(2025, 12, 31, 22, 30), dt.datetime(2025, 7, 1, 10)
    ]  # fmt: skip


@pytest.mark.release
def test_files_without_a_header_and_in_utf_16_have_their_rows(weir: Installation) -> None:
    stream = weir.create(key="_c0", segments=1)
    put(weir, "bare.csv", "a,1\nb,2\n")
    weir.ingest(stream, ["bare.csv"], "csv", header=False)
    put(weir, "more.csv", "title\nc,3\n")
    weir.ingest(stream, ["more.csv"], "csv", header=False, skip_lines=1)
    assert events(weir, stream) == [("a", 1), ("b", 2), ("c", 3)]
    put(weir, "three.csv", "d,4,5\n")
    with raises("columns_unknown 'three.csv' 3 2"):
        weir.ingest(stream, ["three.csv"], "csv", header=False)
    wide = weir.create("s/wide", segments=1)
    put(weir, "wide.csv", 'k\tn\n日本\t1\n"x\ny"\t2\n'.encode("utf-16"))
    weir.ingest(wide, ["wide.csv"], "csv", separator="\\t", encoding="utf-16")
    assert events(weir, wide) == [("日本", 1), ("x\ny", 2)]


@pytest.mark.release
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"encoding": "utf-7"}, "argument_invalid encoding 'utf-7' windows-1252"),
        ({"decimal": ";"}, "argument_invalid decimal ';'"),
        ({"decimal": ",", "thousands": ","}, "argument_invalid decimal thousands ','"),
        ({"separator": "#", "comment": "#"}, "argument_invalid separator comment '#'"),
        ({"quote": "''"}, "argument_invalid quote"),
        ({"time_zone": "Berlin"}, "argument_invalid 'Berlin' Europe/Berlin"),
        ({"date_format": "DD.MM.YYYY"}, "argument_invalid 'DD.MM.YYYY'"),
        ({"timestamp_format": "nonsense"}, "argument_invalid 'nonsense'"),
    ],
)
def test_wrong_options_are_refused_in_a_sentence(
    weir: Installation, options: dict[str, str], says: str
) -> None:
    stream = weir.create()
    put(weir, "x.csv", "k,n\na,1\n")
    with raises(says):
        weir.ingest(stream, ["x.csv"], "csv", **options)
