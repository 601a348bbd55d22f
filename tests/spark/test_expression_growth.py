"""An expression that people give can't use up the memory of those who compute it."""

import itertools
import time
from collections.abc import Sequence

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.chance import cases, random_for
from tests.raises import raises
from tests.spark.random_expressions import COLUMNS, Expressions
from weir.errors import WeirError
from weir.spark.base.session import FAILING_ALONE, private_session
from weir.spark.users.expression_growth import KNOWN, MOST_BYTES, MOST_TIMES, check_growth
from weir.spark.users.expressions import FUNCTIONS, Expression, check_expression, with_outcome

GROWS = {
    "hex(" * 40 + "a" + ")" * 40: "hex() 128 100",
    "hex(" * 7 + "a" + ")" * 7: "hex() 128 100",
    "format_number(n, 2000000000)": "format_number() 2000000000 400",
    "format_number(n, m)": "format_number() constant",
    "replace(replace(replace(a, 'a', 'aaaaaaaa'), 'a', 'aaaaaaaa'), 'a', 'aaaaaaaa')": "replace()",
    f"replace(a, 'b', '{'b' * 101}')": "replace() 101",
    f"replace(a, b, '{'b' * 101}')": "replace() 101",
    "replace(a, 'b', c)": "replace() constant",
    "replace(a, 'b', a)": "replace() constant",
    f"regexp_replace(a, '', '{'b' * 100}')": "regexp_replace() 101",
    "regexp_replace(a, 'b', c)": "regexp_replace() constant",
    "regexp_replace(a, '(?=(.*))', '$1')": "regexp_replace() place",
    "regexp_replace(a, '(?<=(b))', '$1')": "regexp_replace() place",
    "regexp_replace(a, p, '$1')": "regexp_replace() constant",
    "regexp_replace(a, '(.)', '" + "$1" * 50 + "')": "regexp_replace() 151",
    "lpad(a, 1000000000, 'x')": "lpad() 1000000000 1,000",
    "rpad(a, n, 'x')": "rpad() constant",
    "concat_ws(sep, split(a, ''))": "concat_ws() constant",
    f"concat_ws('{'-' * 100}', split(a, ''))": "concat_ws() 101",
    "concat(" + ", ".join(["a"] * 101) + ")": "concat() 101",
    " || ".join(["a"] * 101): "Concat 101",
    "struct(" + ", ".join(["a"] * 101) + ")": "CreateNamedStruct 101",
    "round(d, 2000000000)": "round() 2000000000 400",
    "round(d, -2000000000)": "round() -2000000000 400",
    "floor(d, 2000000000)": "floor() 2000000000 400",
    "ceil(d, n)": "ceil() constant",
    "upper(lower(upper(lower(upper(a)))))": "upper() 243",
    "translate(translate(translate(translate(a, 'a', '😀'), 'b', '😀'), 'c', '😀'), 'd', '😀')":
        "translate() 256",
    "to_json(struct(to_json(struct(to_json(struct(a))))))": "to_json() 216",
    "date_format(d, date_format(d, f))": "date_format() 4,096",
    "concat(" + ", ".join(["rpad(a, 1000)"] * 30) + ")": "concat() 120,000 100,000",
}  # fmt: skip
NO_CALLS_OF = """repeat space sequence array_repeat array_join transform aggregate base64 from_json
    overlay stack sentences zip_with map_concat conv printf format_string mask listagg soundex
    to_char""".split()
SMALL = [
    "concat(a, '-', b)",
    "concat_ws('|', " + ", ".join(f"c{i}" for i in range(120)) + ")",
    "regexp_replace(a, '[^0-9]', '')",
    "regexp_replace(a, '(..)(..)', '$2-$1')",
    "regexp_replace(a, '(?=b)', '-')",
    "replace(a, ' ', '')",
    "replace(a, '-')",
    "lower(trim(a)) || lpad(n, 20, '0')",
    "format_number(n, 2)",
    "format_number(n, '#,##0.00')",
    "round(d, -2)",
    "date_format(t, 'yyyy-MM-dd HH:mm')",
    "hex(sha2(to_json(named_struct('a', a, 'b', b)), 256))",
    "CASE WHEN a = 'x' THEN upper(b) ELSE translate(c, 'abc', 'xyz') END",
]


@pytest.mark.parametrize("text", GROWS, ids=lambda text: text[:40])
def test_what_may_grow_beyond_a_bound_is_refused_by_function_and_bound(
    spark: SparkSession, text: str
) -> None:
    with raises(f"expression_grows {GROWS[text]}") as refused:
        check_expression(text, "routing key")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("function", NO_CALLS_OF)
def test_functions_that_make_long_things_of_short_ones_are_not_in_the_list(function: str) -> None:
    assert function not in FUNCTIONS


def test_every_function_that_is_allowed_has_a_rule_of_growth() -> None:
    assert FUNCTIONS == KNOWN


def test_what_people_write_is_no_growth(spark: SparkSession) -> None:
    for text in SMALL:
        check_expression(text, "routing key")


@pytest.mark.parametrize(
    "text",
    ["+" * 900 + "a", "- " * 400 + "a", "NOT " * 200 + "a", "a" + "[0]" * 300, "a" + "+1" * 400,
     "CASE WHEN a THEN " * 50 + "b" + " END" * 50, "[" * 900, "a" + "::int" * 150,
     "a = " * 200 + "b"],
    ids=lambda text: text[:20],
)  # fmt: skip
def test_what_is_nested_without_end_is_refused_in_one_sentence_and_soon(
    spark: SparkSession, text: str
) -> None:
    # What took more than linear time would not end before the time limit of a test.
    with pytest.raises(WeirError) as refused:
        check_expression(text, "routing key")
    assert refused.value.code in ("expression_invalid", "expression_not_allowed")
    assert "\n" not in str(refused.value)


def accepted(spark: SparkSession, frame: DataFrame, drawn: Expressions) -> Expression | None:
    """An expression of those drawn that Weir accepts for rows, or None."""
    session = private_session(spark)
    text = drawn.draw()
    refused: WeirError | None = None
    try:
        found = check_expression(text, "key", session)
        with_outcome(frame, found, "outcome", "key", session)
    except WeirError as error:
        refused = error
    if refused is None:
        return found
    assert refused.code.startswith(("expression_", "column_")), text
    assert "\n" not in str(refused), text
    return None


def check_computed(frame: DataFrame, some: Sequence[Expression]) -> None:
    """Compute expressions twice, and compare what they give with each other and their bounds."""
    out = frame
    for number, one in enumerate(some):
        out = with_outcome(out, one, f"o{number}", "key", frame.sparkSession)
    texts = [F.col(f"o{n}.value").cast("string").alias(f"t{n}") for n in range(len(some))]
    widths = [F.octet_length(F.coalesce(F.col(c).cast("string"), F.lit(""))).alias(c)
              for c in frame.columns]  # fmt: skip
    found = out.select(*widths, *texts)
    once, again = found.collect(), found.repartition(3).collect()
    assert sorted(map(repr, once)) == sorted(map(repr, again)), [one.text for one in some]
    for number, one in enumerate(some):
        bound = check_growth(one.tree, one.text, "key")
        for row in once:
            most = bound.more + sum(row[c] * n for c, n in bound.times.items())
            size = len((row[f"t{number}"] or "").encode())
            assert size <= most, (one.text, row)
            assert most <= MOST_BYTES + MOST_TIMES * sum(row[c] for c in frame.columns)


def check_many(spark: SparkSession, seed: int, count: int) -> None:
    """Draw expressions until so many are accepted, of which about one in six is; compute these
    twice, and compare what they give with each other and with their bounds."""
    drawn = Expressions(seed, FUNCTIONS)
    session = private_session(spark, FAILING_ALONE)
    rows = drawn.rows(12)
    frame = session.createDataFrame(rows, COLUMNS)
    tries = (accepted(spark, frame, drawn) for _ in range(40 * count))
    expressions = list(itertools.islice(filter(None, tries), count))
    assert len(expressions) == count
    groups = [expressions[first : first + 20] for first in range(0, len(expressions), 20)]
    while groups:
        some = groups.pop()
        try:
            check_computed(frame, some)
        except PySparkException as error:  # a constant part fails, and so it does for every row
            # Its pattern of dates is none; an append names it.
            of_pattern = "DATETIME_PATTERN" in str(error.getCondition())
            if not of_pattern and not str(error.getSqlState()).startswith("22"):
                raise
            groups += [[one] for one in some] if len(some) > 1 else []


def test_random_expressions_are_refused_or_stay_below_their_bounds(spark: SparkSession) -> None:
    check_many(spark, random_for("expressions").randrange(1 << 32), cases(32))


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_random_expressions_for_an_hour(spark: SparkSession) -> None:
    until = time.monotonic() + 3600
    for number in itertools.count():
        if time.monotonic() > until:
            break
        check_many(spark, random_for("an hour", number).randrange(1 << 32), 32)
    assert number > 30
