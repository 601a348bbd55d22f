"""Columns with transforms, and conditions: what can be written, and what is refused."""

import time
from random import Random

import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from weir.errors import InvalidInput
from weir.model.transforms import TRANSFORMS, condition_of, value_of, values_of

VALUES = {
    "a": ["a"],
    " a ": ["a"],
    "a.b": ["a"],
    "`a.b`": ["a.b"],
    "`a``b`": ["a`b"],
    "Upper(A)": ["A"],
    "user": ["user"],
    "date": ["date"],
    "date(timestamp)": ["timestamp"],
    "left ( a , 2 )": ["a"],
    "substring(a, 2, 3)": ["a"],
    "concat(a, '-', 'it''s', 7, b.c)": ["a", "b"],
    "concat(a, A)": ["A"],
    "lower(trim(coalesce(a, b, 'x')))": ["a", "b"],
    "cast(a AS decimal(9, 2))": ["a"],
    "bucket(16, concat(a, b))": ["a", "b"],
    "to_timestamp(at, 'dd.MM.yyyy HH:mm')": ["at"],
    "to_timestamp(at)": ["at"],
}
NO_VALUES = {
    "": "expression_invalid empty",
    "   ": "expression_invalid empty",
    "'constant'": "expression_invalid every",
    "7": "expression_invalid every",
    "concat('a', 'b')": "expression_invalid every",
    "a + 1": "expression_invalid '+'",
    "a || b": "expression_invalid '|'",
    "a % 16": "expression_invalid '%'",
    "-a": "expression_invalid '-a'",
    "m['key']": "expression_invalid",
    "CASE WHEN a THEN b END": "expression_invalid 'WHEN'",
    "a = 1": "expression_invalid '='",
    "a AS b": "expression_invalid 'AS' backquotes",
    "Order No": "expression_invalid 'No' backquotes",
    "order-id": "expression_invalid '-' backquotes",
    "order/id": "expression_invalid '/' backquotes",
    "1st": "expression_invalid '1' backquotes",
    "like": "expression_invalid 'like' backquotes",
    "Betrag €": "expression_invalid '€'",
    "a; DROP TABLE stream": "expression_invalid ';",
    "concat(a": "expression_invalid ')' end",
    "concat(a,": "expression_invalid end",
    "a.": "expression_invalid dot",
    "a.'b'": "expression_invalid dot",
    "null": "expression_invalid 'null'",
    "`a": "expression_invalid '`a'",
    "'a": "expression_invalid",
    "concat(a, '\\n')": "expression_invalid backslash another",
    "${env:HOME}": "expression_invalid",
    "if(a, b, c)": "expression_invalid if() lower cast",
    "regexp_replace(a, 'x', '')": "expression_invalid regexp_replace() cast",
    "java_method('java.lang.System', 'getenv', a)": "expression_invalid java_method() cast",
    "lower(reflect('a', 'b', a))": "expression_invalid reflect() cast",
    "current_timestamp()": "expression_invalid current_timestamp() cast",
    "lower()": "expression_invalid lower column",
    "lower(a, b)": "expression_invalid lower column",
    "concat()": "expression_invalid concat several",
    "left(a)": "expression_invalid left column number",
    "left(a, '2')": "expression_invalid left",
    "left('a', 2)": "expression_invalid left",
    "bucket(a, 16)": "expression_invalid bucket",
    "truncate(1.5, a)": "expression_invalid truncate",
    "to_date(a)": "expression_invalid to_date quotes",
    "to_date(a, '')": "expression_invalid to_date quotes",
    "ä": "expression_invalid ä backquotes",
    "cast(a)": "expression_invalid cast",
    "_weir_key": "columns_invalid column",
    "lower(_metadata)": "columns_invalid column",
    "a" * 1_001: "expression_invalid 1,001",
    "lower(" * 51 + "a" + ")" * 51: "expression_invalid 50",
    f"concat({', '.join(['a'] * 17)})": "expression_invalid 17 times",
}
CONDITIONS = {
    "a = 'x'": ["a"],
    "a": ["a"],
    "NOT (a <> 1 AND b == c)": ["a", "b", "c"],
    "at >= DATE '2024-01-31' OR at < timestamp '2024-01-31 12:00:00'": ["at"],
    "a IS NOT NULL AND b is null": ["a", "b"],
    "a IN (1, -2.5, 1e3) AND b NOT IN ('x')": ["a", "b"],
    "lower(a) LIKE 'x%' AND a NOT LIKE '\\\\%'": ["a"],
    "n BETWEEN 1 AND 5 AND m NOT BETWEEN o AND 7": ["n", "m", "o"],
    "a = true": ["a"],
}
NO_CONDITIONS = {
    "1 = 1": "expression_invalid every",
    "a IN (b)": "expression_invalid IN",
    "a LIKE b": "expression_invalid LIKE",
    "a RLIKE 'x'": "expression_invalid 'RLIKE'",
    "a IS 1": "expression_invalid NULL",
    "a NOT 1": "expression_invalid NOT",
    "a BETWEEN 1": "expression_invalid AND",
    "(a = 1": "expression_invalid ')'",
    "a = 1 OR": "expression_invalid end",
    "a IN (SELECT x FROM t)": "expression_invalid 'x'",
    "NOT " * 51 + "a": "expression_invalid 50",
}


@pytest.mark.parametrize("text", VALUES)
def test_a_column_with_transforms_is_read_with_its_columns(text: str) -> None:
    assert list(value_of(text, "routing key").columns) == VALUES[text]


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_condition_is_read_with_its_columns(text: str) -> None:
    assert list(condition_of(text, "condition").columns) == CONDITIONS[text]


@pytest.mark.parametrize(
    ("text", "condition"),
    [*((text, False) for text in NO_VALUES), *((text, True) for text in NO_CONDITIONS)],
)
def test_everything_else_is_refused_in_one_sentence(text: str, condition: bool) -> None:
    read, what = (condition_of, "condition") if condition else (value_of, "routing key")
    with raises((NO_CONDITIONS if condition else NO_VALUES)[text]) as refused:
        read(text, what)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith((f"the {what} ", "column "))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("city, lower(name) AS name", ["city", "name"]),
        ("city, lower(name) AS `the name`", ["city", "the name"]),
        ("lower(name)", ["value"]),
        ("city", ["value"]),
        ("lower(name) AS low", ["low"]),
        ("city AS city", ["city"]),
    ],
)
def test_values_have_names(text: str, names: list[str]) -> None:
    assert list(values_of(text, "value")) == names


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("city, lower(name)", "expression_invalid lower(name) AS"),
        ("city, City", "expression_invalid 'City'"),
        ("city,", "expression_invalid end"),
        ("lower(a) AS _weir_a", "columns_invalid column"),
    ],
)
def test_values_without_names_of_their_own_are_refused(text: str, wrong: str) -> None:
    with raises(wrong):
        values_of(text, "value")


@pytest.mark.parametrize(
    ("text", "new", "wanted"),
    [
        ("a", {"a": "b"}, "b"),
        ("A", {"a": "and"}, "`and`"),
        ("`a b`", {"a b": "c"}, "c"),
        ("concat(a, 'a', b, A)", {"a": "x y"}, "concat(`x y`, 'a', b, `x y`)"),
        ("concat(a, b)", {"a": "b", "b": "a"}, "concat(b, a)"),
        ("a.a", {"a": "b"}, "b.a"),
        ("lower(lower)", {"lower": "x"}, "lower(x)"),
        ("concat(a, b)", {"c": "d"}, "concat(a, b)"),
    ],
)
def test_columns_that_are_renamed_are_followed(text: str, new: dict[str, str], wanted: str) -> None:
    renamed = value_of(text, "routing key").renamed(new)
    assert renamed == wanted
    value_of(renamed, "routing key")


PARTS = [
    *TRANSFORMS, "a", "`b c`", "a.b", "'x'", '"y"', "'", "`", "\\", "7", "-1.5e3", "(", "(", ")",
    ")", ",", ",", ".", "=", "<>", "<=", "and", "or", "not", "is", "null", "in", "like", "between",
    "as", "cast", "struct", "date '2024-01-01'", "true", "€", "\0", "\ud800", "\n", ";", "--", "$",
]  # fmt: skip


def any_text(random: Random) -> str:
    count = random.choice([1, 3, 8, 30, 200])
    gap = random.choice(["", " ", " "])
    return gap.join(random.choice(PARTS) for _ in range(count))


@pytest.mark.random
def test_any_text_is_a_value_or_refused_in_one_sentence_at_once() -> None:
    random = random_for("transforms")
    texts = [any_text(random) for _ in range(cases(20_000))]
    texts += [part * (1_000 // len(part)) for part in [*PARTS, "a,", "''", "lower(", "not(", "(a)"]]
    for text in texts:
        for read in (value_of, condition_of, values_of):
            begun = time.perf_counter()
            try:
                read(text, "routing key")
            except InvalidInput as refused:
                sentence = refused.sentence
                assert sentence.startswith(("the routing key ", "column "))
                assert sentence.endswith(".")
                assert "\n" not in sentence
            assert time.perf_counter() - begun < 1, text
