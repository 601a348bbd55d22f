"""Texts as values: each says exactly what its text says, or there is none."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal, localcontext
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from tests.chance import cases, random_for
from tests.kernel.texts import DECLARED, GUESSED, NOT_KEPT
from weir.errors import InvalidInput
from weir.inputs.text_guess import guess, look
from weir.kernel.text_formats import check_format
from weir.kernel.text_options import TextOptions
from weir.kernel.text_values import twice, value
from weir.model.schema import show

PLAIN = TextOptions()
BERLIN = TextOptions(time_zone="Europe/Berlin")


def of(texts: list[str | None], kind: str, how: TextOptions = PLAIN, **guessed: bool) -> list[Any]:
    """The values of texts."""
    return list(value(pa.chunked_array([texts], pa.string()), kind, how, **guessed).to_pylist())


def guessed(texts: list[str | None], how: TextOptions = PLAIN) -> Any:
    """What is guessed of texts."""
    return guess(look(pa.chunked_array([texts], pa.string()), how), how)


@pytest.mark.parametrize("name", GUESSED)
def test_a_type_is_taken_if_each_text_comes_back_from_its_value(name: str) -> None:
    kind, texts = GUESSED[name]
    assert guessed([*texts, None, ""]).kind == kind
    assert guessed([*texts[:2], "x"]).kind == "string"
    if kind == "string":
        return
    values = of([*texts], kind, guessed=True)
    assert None not in values
    shown: dict[str, Callable[[str], Any]] = {
        "long": lambda text: int(text), "double": lambda text: float(text),
        "boolean": lambda text: text == "true", "date": dt.date.fromisoformat,
        "timestamp": lambda text: dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC),
    }  # fmt: skip
    assert [repr(one) for one in values if kind == "double"] == [
        repr(float(text)) for text in texts if kind == "double"
    ]
    if kind != "double":
        assert values == [shown.get(kind, Decimal)(text) for text in texts]


@pytest.mark.parametrize(
    ("texts", "kind", "why"),
    [
        ([], "string", "no rows"),
        ([None, None], None, ""),
        ([None, ""], "string", ""),
        (["3.10", "3.9"], "string", "3.10 would become 3.1 as a number"),
        (["08:15"], "string", "08:15 is a time without a day"),
        (["9" * 39], "string", ""),
    ],
)
def test_a_guess_says_why_a_type_is_no_narrower(
    texts: list[str | None], kind: str | None, why: str
) -> None:
    found = guessed(texts)
    assert (found.kind, why in found.why) == (kind, True)


KINDS = {one["name"]: show(one["type"]) for one in DECLARED}
KEPT = {
    "v": ["1.50", "1e2", "1E-7", "-0", "inf", "NaN", "1234567890123456"],
    "f": ["0.1", "1.50", "16777216"],
    "p": ["1.5", "1", "-0.00", "1.500", "1e2", "12345678.90", "10"],
    "at": ["2026-01-01", "2026-01-01T00:00:00+02:00", "2026-01-01 00:00:00.1200000Z",
           "2026-01-01 00:00 -0330", "2026-01-01T08:15"],
    "here": ["2026-01-01", "2026-01-01T08:15:00.5"],
    "day": ["0001-01-01", "2024-02-29"],
    "flag": ["TRUE", "False"],
    "i": ["-2147483648", "0"],
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_KEPT)
def test_a_declared_type_keeps_each_text_that_says_the_same(name: str) -> None:
    texts = [*KEPT[name], *NOT_KEPT[name], None, ""]
    alone = [of([text], KINDS[name])[0] for text in texts]
    together = of(texts, KINDS[name])
    assert [one is not None for one in together] == [text in KEPT[name] for text in texts]
    assert repr(together) == repr(alone)


def test_integers_and_decimals_keep_all_their_digits_and_no_others() -> None:
    most = [(1 << 63) - 1, -(1 << 63)]
    assert of([*map(str, most), "9223372036854775808", "-9223372036854775809"], "long") == [
        *most, None, None,
    ]  # fmt: skip
    assert of(["127", "128", "-128", "-129", "-0", "01"], "byte") == [127, None, -128] + [None] * 3
    assert of(["1" * 38, "1" * 39], "decimal(38,0)") == [Decimal("1" * 38), None]
    assert of(["0.12", ".12", "1.00"], "decimal(2,2)") == [Decimal("0.12"), None, None]
    assert of(["10.0", "100", "7.5"], "decimal(3,0)") == [Decimal(10), Decimal(100), None]


def test_numbers_are_read_as_their_marks_say() -> None:
    how = TextOptions(decimal=",", thousands=".")
    assert of(["1.234,50", "1.5", "-7", "1,234.5"], "double", how) == [1234.5, None, -7.0, None]
    assert guessed(["1.234,50", "-0,05"], how).kind == "decimal(18,2)"


def test_times_in_a_zone_are_refused_where_its_clocks_leave_them_out_or_pass_them_twice() -> None:
    texts = ["2026-03-29 01:59", "2026-03-29 02:30", "2026-10-25 02:30", "2026-10-25 03:00",
             "2026-10-25 02:30+01:00"]  # fmt: skip
    kept = [dt.datetime(2026, 3, 29, 0, 59, tzinfo=dt.UTC), None, None,
            dt.datetime(2026, 10, 25, 2, tzinfo=dt.UTC),
            dt.datetime(2026, 10, 25, 1, 30, tzinfo=dt.UTC)]  # fmt: skip
    assert of([*texts], "timestamp", BERLIN) == kept
    assert twice(pa.chunked_array([texts]), BERLIN).to_pylist() == [
        False,
        False,
        True,
        False,
        False,
    ]
    found = guessed(["2026-10-25 02:30", "2026-10-25 03:30"], BERLIN)
    assert (found.kind, found.why) == (
        "string", "2026-10-25 02:30 is twice in Europe/Berlin, as its clocks are put back",
    )  # fmt: skip
    assert guessed(["2026-01-01T00:00:00+01:00", "2026-07-01T00:00:00+02:00"], BERLIN).kind == (
        "timestamp"
    )
    assert guessed(["2026-01-01T00:00:00+02:00"], BERLIN).kind == "string"


@pytest.mark.parametrize(
    ("written", "kept", "not_kept"),
    [
        ("dd.MM.yyyy", "28.02.2026", ["30.02.2026", "28.2.2026", "28.02.26", "28.02.2026 "]),
        ("M/d/yyyy", "2/28/2026", ["02/28/2026", "13/1/2026"]),
        ("yyyyMMdd", "20260228", ["20260230", "2026-02-28"]),
    ],
)
def test_dates_are_read_in_their_format(written: str, kept: str, not_kept: list[str]) -> None:
    how = TextOptions(date_format=written)
    assert of([kept, *not_kept], "date", how) == [dt.date(2026, 2, 28), *[None] * len(not_kept)]


def test_times_are_read_in_their_format() -> None:
    how = TextOptions(timestamp_format="dd.MM.yyyy HH:mm:ss.SSS", time_zone="Europe/Berlin")
    texts: list[str | None] = ["28.02.2026 23:30:00.250", "29.03.2026 02:30:00.000",
        "25.10.2026 02:30:00.000", "28.02.2026 24:00:00.000"]  # fmt: skip
    at = dt.datetime(2026, 2, 28, 22, 30, 0, 250_000, dt.UTC)
    assert of(texts, "timestamp", how) == [at, None, None, None]


@pytest.mark.parametrize(
    ("pattern", "like"),
    [
        ("EEE, dd MMM yyyy hh:mm a", "%a, %d %b %Y %I:%M %p"),
        ("EEEE dd MMMM yyyy HH:mm", "%A %d %B %Y %H:%M"),
        ("MM/dd/yy[ HH:mm]", "%m/%d/%y %H:%M"),
        ("yyyyMMdd'T'HHmm", "%Y%m%dT%H%M"),
    ],
)
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_names_of_months_and_days_and_hours_of_twelve_are_those_that_python_writes(
    pattern: str, like: str, zone: str
) -> None:
    how, here = TextOptions(timestamp_format=pattern, time_zone=zone), ZoneInfo(zone)
    times = [dt.datetime(2026, 1, 1, 0, 30) + dt.timedelta(hours=401 * i) for i in range(40)]
    texts: list[str | None] = [one.strftime(like) for one in times]
    assert of(texts, "timestamp", how) == [one.replace(tzinfo=here) for one in times]
    assert of(texts, "timestamp_ntz", how) == times
    wrong = {name: text.replace(name, other) for text in texts if text is not None
             for name, other in (("Mon", "Tue"), ("Jan", "jan"), (" 01:", " 1:"), ("AM", "am"))
             if name in text}  # fmt: skip
    assert of([*wrong.values()], "timestamp", how) == [None] * len(wrong)


@pytest.mark.parametrize(
    ("pattern", "zone", "kept", "others"),
    [
        ("yyyy-MM-dd HH:mm XXX", "UTC", "2026-07-01 12:00 Z", ["+00:00", "+02:00", "+0000"]),
        ("yyyy-MM-dd HH:mm xxx", "UTC", "2026-07-01 12:00 +00:00", ["Z", "+02:00", "+0000"]),
        ("yyyy-MM-dd HH:mm Z", "Asia/Kolkata", "2026-07-01 12:00 +0530", ["+05:30", "+0500"]),
        ("yyyy-MM-dd HH:mm XXX", "America/St_Johns", "2026-07-01 12:00 -02:30", ["-03:30"]),
    ],
)
def test_an_offset_in_a_format_is_that_of_the_zone(
    pattern: str, zone: str, kept: str, others: list[str]
) -> None:
    texts: list[str | None] = [kept, *(f"2026-07-01 12:00 {one}" for one in others)]
    at = dt.datetime(2026, 7, 1, 12, tzinfo=ZoneInfo(zone))
    how = TextOptions(timestamp_format=pattern, time_zone=zone)
    assert of(texts, "timestamp", how) == [at, *[None] * len(others)]


@pytest.mark.parametrize(
    "pattern",
    ["yyyy-MM", "dd", "yyyy-MM-dd hh:mm", "yyyy-MM-dd HH:mm z", "DDD yyyy", "yyyy-MM-dd yyyy",
     "yyyy-MM-dd HH:mm a", "yyyy-MM-dd G", "yyyy-MM-dd '", "yyyy-MM-dd #"],
)  # fmt: skip
def test_a_format_that_is_not_read_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(InvalidInput, match="is not read; write it such as") as found:
        check_format(pattern)
    assert found.value.code == "argument_invalid"


def test_a_day_in_a_format_with_a_time_of_day_is_kept_at_midnight_only() -> None:
    how = TextOptions(date_format="dd MMM yyyy HH:mm")
    found = of(["01 Feb 2026 00:00", "01 Feb 2026 00:01"], "date", how)
    assert found == [dt.date(2026, 2, 1), None]


@pytest.mark.random
def test_random_numbers_come_back_or_are_no_values() -> None:
    for case in range(cases(20)):
        random = random_for("numbers", case)
        texts = [_number(random) for _ in range(200)]
        doubles = of([*texts], "double")
        for text, found in zip(texts, doubles, strict=True):
            exact = Decimal(text)
            same = Decimal(repr(float(text))) == exact
            assert (found is not None) == same, text
            assert found is None or found == float(text), text
        scale = random.randrange(0, 19)
        kind = f"decimal(20,{scale})"
        for text, found in zip(texts, of([*texts], kind), strict=True):
            exact = Decimal(text)
            with localcontext(prec=80):
                fits = abs(exact) < 10 ** (20 - scale) and exact * 10**scale % 1 == 0
            assert (found == exact) if fits else found is None, (text, kind)


def _number(random: Random) -> str:
    sign, whole = random.choice(["", "-"]), str(random.randrange(10 ** random.randint(0, 8)))
    fraction = "".join(random.choice("0123456789") for _ in range(random.randint(0, 12)))
    exponent = random.choice(["", "", "", f"e{random.randint(-9, 9)}"])
    return f"{sign}{whole}{'.' if fraction else ''}{fraction}{exponent}"


def test_the_clocks_of_a_zone_change_after_the_last_year_of_its_table_too() -> None:
    texts: list[str | None] = ["2050-07-01 02:00", "2050-01-01 02:00", None, "2020-07-01 02:00",
                               "2050-03-27 02:30", "2050-10-30 02:30"]  # fmt: skip
    wanted = [dt.datetime.fromisoformat(one).replace(tzinfo=ZoneInfo("Europe/Berlin"))
              if one else None for one in texts[:4]]  # fmt: skip
    assert of(texts, "timestamp", BERLIN) == [*wanted, None, None]
    zoned: list[str | None] = ["2050-07-01T02:00:00+02:00", "2050-07-01T02:00:00+01:00"]
    assert of(zoned, "timestamp", BERLIN, guessed=True) == [wanted[0], None]
    how = TextOptions(time_zone="Europe/Berlin", timestamp_format="dd.MM.yyyy HH:mm")
    assert of(["01.07.2050 02:00"], "timestamp", how) == [wanted[0]]
    assert of(["01.07.2050 02:00"], "timestamp_ntz", how) == [dt.datetime(2050, 7, 1, 2)]


def test_a_value_does_not_depend_on_the_others_of_its_column() -> None:
    texts: list[str | None] = ["1e-7", "1e-07", "1.0E-7", "1e+20", "-0", "1.5"]
    alone = [of([text], "double", guessed=True)[0] for text in texts]
    assert None not in alone
    assert of([*texts, "x"], "double", guessed=True) == [*alone, None]


def test_an_offset_of_whole_minutes_is_none_of_a_clock_that_had_seconds() -> None:
    how = TextOptions(time_zone="Europe/Berlin", timestamp_format="yyyy-MM-dd HH:mm xxx")
    found = of(["1890-01-01 00:00 +00:53", "1894-01-01 00:00 +01:00"], "timestamp", how)
    assert found == [None, dt.datetime(1893, 12, 31, 23, tzinfo=dt.UTC)]


def test_a_point_without_decimals_is_no_number() -> None:
    for kind in ("decimal(10,0)", "decimal(10,2)", "double", "long"):
        assert of(["1."], kind) == [None]
