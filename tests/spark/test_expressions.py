"""The expressions that people may give as a routing key, and those that they may not."""

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from weir.errors import InvalidInput
from weir.spark.expressions import FUNCTIONS, check_expression, parse_columns

ALLOWED = {
    "a": ["a"],
    "a.b": ["a"],
    "`a.b`": ["a.b"],
    "`a``b`": ["a`b"],
    "Upper(A)": ["A"],
    "upper(trim(a)) || '-' || b": ["a", "b"],
    "concat_ws('/', a, cast(b AS string))": ["a", "b"],
    "a::bigint % 16": ["a"],
    "-a + b * 2 - c / 4 div 2": ["a", "b", "c"],
    "CASE WHEN a IS NULL THEN b ELSE c END": ["a", "b", "c"],
    "CASE a WHEN 1 THEN b END": ["a", "b"],
    "if(a > 1 AND NOT b, c, coalesce(d, 'x'))": ["a", "b", "c", "d"],
    "a BETWEEN 1 AND 5": ["a"],
    "a IN (1, 2) OR b <=> c": ["a", "b", "c"],
    "a LIKE 'x%' OR b RLIKE 'y+'": ["a", "b"],
    "date_trunc('day', a)": ["a"],
    "extract(year FROM a)": ["a"],
    "a < DATE '2024-01-01'": ["a"],
    "if(a = 'today', a, b)": ["a", "a", "b"],
    "sha2(cast(a AS binary), 256)": ["a"],
    "m['key']": ["m"],
    "xs[0]": ["xs"],
    "substring(a FROM 2 FOR 3)": ["a"],
    "a /* a comment */": ["a"],
    "`user`": ["user"],
}
REFUSED = {
    "": "is empty",
    "   ": "is empty",
    "'constant'": "uses no column",
    "1 + 1": "uses no column",
    "java_method('java.lang.System', 'getenv', 'PGPASSWORD')": r"calls java_method\(\)",
    "reflect('java.lang.Runtime', 'getRuntime', a)": r"calls reflect\(\)",
    "try_reflect('a', 'b', a)": r"calls try_reflect\(\)",
    "lower(upper(concat(a, java_method('a', 'b'))))": r"calls java_method\(\)",
    "CASE WHEN a THEN reflect('a', 'b') END": r"calls reflect\(\)",
    "m[java_method('a', 'b', a)]": r"calls java_method\(\)",
    "lower(a) FILTER (WHERE rand() > 1)": r"calls rand\(\)",
    "input_file_name()": r"calls input_file_name\(\)",
    "a || input_file_block_start()": r"calls input_file_block_start\(\)",
    "rand()": r"calls rand\(\)",
    "a + randn(7)": r"calls randn\(\)",
    "uuid()": r"calls uuid\(\)",
    "shuffle(a)": r"calls shuffle\(\)",
    "monotonically_increasing_id() + a": r"calls monotonically_increasing_id\(\)",
    "spark_partition_id() + a": r"calls spark_partition_id\(\)",
    "current_timestamp()": r"calls current_timestamp\(\)",
    "now() - a": r"calls now\(\)",
    "current_timestamp": "uses current_timestamp",
    "date_trunc('day', CURRENT_DATE) < a": "uses CURRENT_DATE",
    "concat(a, session_user)": "uses session_user",
    "coalesce(a, DATE 'today')": "another moment each time",
    "coalesce(a, TIMESTAMP ' Now')": "another moment each time",
    "current_user()": r"calls current_user\(\)",
    "version() || a": r"calls version\(\)",
    "my_function(a)": r"calls my_function\(\)",
    "spark_catalog.default.lower(a)": r"calls spark_catalog.default.lower\(\)",
    "(SELECT max(x) FROM t)": "uses ScalarSubquery",
    "a IN (SELECT x FROM t)": "uses InSubquery",
    "EXISTS (SELECT 1 FROM t)": "uses Exists",
    "transform(a, x -> x + 1)": r"calls transform\(\)",
    "x -> x + a": "uses LambdaFunction",
    "row_number() OVER (PARTITION BY a)": "uses WindowExpression",
    "first(a)": r"uses AggregateExpression|calls first\(\)",
    "count(a)": r"calls count\(\)",
    "explode(a)": r"calls explode\(\)",
    "*": "uses UnresolvedStar",
    "a AS b": "uses Alias",
    ":parameter": "uses NamedParameter",
    "identifier('a')": "uses ExpressionWithUnresolvedIdentifier",
    "secret('scope', a)": r"calls secret\(\)",
    "a b c": "is not a SQL expression: .*PARSE_SYNTAX_ERROR",
    "a; DROP TABLE stream": "is not a SQL expression",
    "concat(a": "is not a SQL expression",
    "SELECT a FROM t": "is not a SQL expression|uses",
}


@pytest.mark.parametrize("text", ALLOWED)
def test_plain_expressions_are_accepted_with_the_columns_they_use(
    spark: SparkSession, text: str
) -> None:
    assert check_expression(text, "routing key") == ALLOWED[text]


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_refused_in_one_sentence(spark: SparkSession, text: str) -> None:
    with pytest.raises(InvalidInput, match=REFUSED[text]) as refused:
        check_expression(text, "routing key")
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("the routing key ")


def test_every_function_of_the_list_is_built_in(spark: SparkSession) -> None:
    known = {row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert FUNCTIONS - known - {"between", "extract"} == set()


def test_parsing_needs_no_session_and_says_the_same_without_one() -> None:
    # As in the job that creates a stream; a process of its own, since this one has a session.
    program = """
from weir.spark.expressions import check_expression
from weir.errors import InvalidInput
print(check_expression("upper(a) || b", "routing key"))
try:
    check_expression("a b c", "routing key")
except InvalidInput as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": "plugins", "PATH": "/usr/bin:/bin", "SPARK_LOCAL_IP": "127.0.0.1"},
    )  # fmt: skip
    columns, sentence = done.stdout.strip().splitlines()
    assert columns == "['a', 'b']"
    assert sentence.startswith("the routing key 'a b c' is not a SQL expression: ")


def test_columns_are_parsed_as_spark_sql(spark: SparkSession) -> None:
    fields = parse_columns(spark, "k STRING, `a.b` BIGINT, xs ARRAY<DOUBLE>", ["k", "a.b"])
    assert [(field["name"], field["nullable"]) for field in fields] == [
        ("k", True), ("a.b", True), ("xs", True),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ("k STRING n LONG", "can't be read"),
        ("k NUMBERS", "can't be read"),
        ("n LONG", "uses 'k', which is not among the columns"),
        ("STRUCT<k: STRING", "can't be read"),
        ("k STRING NOT NULL", "column 'k' is NOT NULL"),
    ],
)
def test_columns_that_cannot_be_parsed_are_refused_in_one_sentence(
    spark: SparkSession, columns: str, says: str
) -> None:
    with pytest.raises(InvalidInput, match=says) as refused:
        parse_columns(spark, columns, ["k"])
    assert "\n" not in str(refused.value)
