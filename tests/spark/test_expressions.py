"""The expressions that people may give as a routing key, and those that they may not."""

import subprocess
import sys

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from tests.chance import cases, random_for, some
from tests.raises import raises
from weir.errors import InvalidInput
from weir.model.declared_columns import declared_columns
from weir.model.plain_column import plain_column
from weir.spark.base.session import private_session
from weir.spark.users.expressions import (
    FUNCTIONS,
    check_expression,
    with_expression,
    with_outcome,
    with_value,
)

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
    "lpad(a, 8, '0')": ["a"],
    "cast(a AS timestamp)": ["a"],
    "to_date(concat('20', a))": ["a"],
}
REFUSED = {
    "": "expression_invalid empty",
    "   ": "expression_invalid empty",
    "'constant'": "expression_constant",
    "1 + 1": "expression_constant",
    "java_method('java.lang.System', 'getenv', 'PGPASSWORD')": "expression_not_allowed java_method",
    "reflect('java.lang.Runtime', 'getRuntime', a)": "expression_not_allowed reflect()",
    "try_reflect('a', 'b', a)": "expression_not_allowed try_reflect()",
    "lower(upper(concat(a, java_method('a', 'b'))))": "expression_not_allowed java_method()",
    "CASE WHEN a THEN reflect('a', 'b') END": "expression_not_allowed reflect()",
    "m[java_method('a', 'b', a)]": "expression_not_allowed java_method()",
    "lower(a) FILTER (WHERE rand() > 1)": "expression_not_allowed rand()",
    "input_file_name()": "expression_not_allowed input_file_name()",
    "a || input_file_block_start()": "expression_not_allowed input_file_block_start()",
    "rand()": "expression_not_allowed rand()",
    "a + randn(7)": "expression_not_allowed randn()",
    "uuid()": "expression_not_allowed uuid()",
    "shuffle(a)": "expression_not_allowed shuffle()",
    "monotonically_increasing_id() + a": "expression_not_allowed monotonically_increasing_id()",
    "spark_partition_id() + a": "expression_not_allowed spark_partition_id()",
    "current_timestamp()": "expression_not_allowed current_timestamp()",
    "now() - a": "expression_not_allowed now()",
    "current_timestamp": "expression_not_deterministic current_timestamp run column",
    "date_trunc('day', CURRENT_DATE) < a": "expression_not_deterministic CURRENT_DATE",
    "concat(a, session_user)": "expression_not_deterministic session_user",
    "cast('${env:JWT_SECRET}' AS int) + a": "expression_not_allowed '${'",
    "concat(a, '${system:sun.java.command}')": "expression_not_allowed '${'",
    "cast('now' AS timestamp) > a": "expression_not_deterministic constant",
    "coalesce(a, date('today'))": "expression_not_deterministic constant",
    "coalesce(a, to_timestamp('now'))": "expression_not_deterministic constant",
    "coalesce(a, cast(concat('to', 'day') AS date))": "expression_not_deterministic constant",
    "coalesce(a, 'today'::timestamp_ntz)": "expression_not_deterministic constant",
    "a || " + " || ".join(["'x'"] * 300): "expression_invalid 2,101",
    "concat(_metadata.file_path, a)": "column_name_reserved '_metadata'",
    "lpad(a, 2147483647, 'x')": "expression_grows lpad() 2147483647",
    "rpad(a, n, 'x')": "expression_grows rpad() constant",
    "coalesce(a, DATE 'today')": "expression_not_deterministic literal write",
    "coalesce(a, DATE '\\u0074oday')": "expression_not_deterministic literal write",
    "coalesce(a, DATE '\x01today')": "expression_not_deterministic literal write",
    "coalesce(a, TIMESTAMP ' Now')": "expression_not_deterministic literal write",
    "current_user()": "expression_not_allowed current_user()",
    "version() || a": "expression_not_allowed version()",
    "my_function(a)": "expression_not_allowed my_function()",
    "spark_catalog.default.lower(a)": "expression_not_allowed spark_catalog.default.lower()",
    "(SELECT max(x) FROM t)": "expression_not_allowed ScalarSubquery",
    "a IN (SELECT x FROM t)": "expression_not_allowed InSubquery",
    "EXISTS (SELECT 1 FROM t)": "expression_not_allowed Exists",
    "transform(a, x -> x + 1)": "expression_not_allowed transform()",
    "x -> x + a": "expression_not_allowed LambdaFunction",
    "row_number() OVER (PARTITION BY a)": "expression_not_allowed WindowExpression",
    "first(a)": "expression_not_allowed AggregateExpression",
    "count(a)": "expression_not_allowed count()",
    "explode(a)": "expression_not_allowed explode()",
    "*": "expression_not_allowed UnresolvedStar",
    "a AS b": "expression_not_allowed backquotes",
    "Order No": "expression_not_allowed Order No backquotes",
    "Betrag €": "expression_invalid backquotes",
    ":parameter": "expression_not_allowed NamedParameter",
    "identifier('a')": "expression_not_allowed ExpressionWithUnresolvedIdentifier",
    "secret('scope', a)": "expression_not_allowed secret()",
    "a b c": "expression_invalid PARSE_SYNTAX_ERROR",
    "a; DROP TABLE stream": "expression_invalid PARSE_SYNTAX_ERROR",
    "concat(a": "expression_invalid PARSE_SYNTAX_ERROR",
    "SELECT a FROM t": "expression_invalid PARSE_SYNTAX_ERROR",
}


@pytest.mark.parametrize("text", ALLOWED)
def test_plain_expressions_are_accepted_with_the_columns_they_use(
    spark: SparkSession, text: str
) -> None:
    assert check_expression(text, "routing key").columns == ALLOWED[text]


@pytest.mark.parametrize("text", REFUSED)
def test_everything_else_is_refused_in_one_sentence(spark: SparkSession, text: str) -> None:
    with raises(REFUSED[text]) as refused:
        check_expression(text, "routing key")
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith(("the routing key ", "column "))


def test_every_function_of_the_list_is_built_in(spark: SparkSession) -> None:
    known = {row.function for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}
    assert FUNCTIONS - known - {"between", "extract"} == set()


@pytest.mark.jvm
def test_parsing_needs_no_session_and_says_the_same_without_one() -> None:
    # As in the job that creates a stream; a process of its own, since this one has a session.
    program = """
from weir.spark.users.expressions import check_expression
from weir.errors import InvalidInput
print(check_expression("upper(a) || b", "routing key").columns)
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


@pytest.mark.random
def test_declared_columns_are_what_sparks_parser_makes_of_them(spark: SparkSession) -> None:
    random = random_for("declared columns")
    names = ["BOOLEAN", "tinyint", "SmallInt", "INT", "integer", "BIGINT", "long", "FLOAT", "real",
             "DOUBLE", "DATE", "TIMESTAMP", "timestamp_ntz", "timestamp_ltz", "STRING", "binary",
             "VARIANT", "DECIMAL", "dec(7)", "numeric( 38 , 10 )", "decimal(3,3)"]  # fmt: skip

    def kind(depth: int) -> str:
        choice = random.randrange(8 if depth < 3 else 5)
        if choice < 5:
            return random.choice(names)
        if choice == 5:
            return f"ARRAY<{kind(depth + 1)}>"
        if choice == 6:
            return f"map < STRING,{kind(depth + 1)} >"
        return "STRUCT<" + ", ".join(field(i, depth + 1) for i in range(3)) + ">"

    def field(number: int, depth: int) -> str:
        name = random.choice([f"c{number}", f"`c.{number} ``x`", f"{number}x", f"date{number}"])
        colon = random.choice([" ", ": ", ":"]) if depth else " "
        comment = random.choice(["", "", " COMMENT 'it\\'s \\\\ \\n so'", ' comment "a b"'])
        return f"{name}{colon}{kind(depth)}{comment}"

    for _ in range(cases(400)):
        text = ",\n".join(field(i, 0) for i in range(1, 4))
        expected = StructType.fromDDL(text)
        assert isinstance(expected, StructType)
        assert declared_columns(text) == expected.jsonValue()["fields"], text


def test_what_is_executed_is_the_tree_that_was_checked(spark: SparkSession) -> None:
    # Spark's own way to make a column of a text replaces ${...} in it first.
    frame = spark.createDataFrame([("a",)], "a string")
    resolving = private_session(spark)
    checked = check_expression("concat(a, '$', '{env:HOME}')", "key", resolving)
    (row,) = with_expression(frame, checked, "value", "key", resolving).collect()
    assert row.value == "a${env:HOME}"


@pytest.mark.parametrize(
    ("key", "types"),
    [
        ("if(a < 'today', 'old', 'new')", "a date"),
        ("if(a = ' Now ', 'x', 'y')", "a timestamp"),
        ("date_format('tomorrow', a)", "a string"),
        ("concat(a, year('yesterday'))", "a string"),
        ("if(a < left('todayish', 5), 'old', 'new')", "a date"),
        ("if(a < '\x01today', 'old', 'new')", "a date"),
        ("if(a < nvl('today', 'x'), 'old', 'new')", "a date"),
    ],
)
def test_a_constant_that_spark_takes_for_the_moment_is_refused_when_types_are_known(
    spark: SparkSession, key: str, types: str
) -> None:
    resolving = private_session(spark)
    checked = check_expression(key, "key", resolving)
    with raises("expression_not_deterministic constant"):
        with_expression(spark.createDataFrame([], types), checked, "value", "key", resolving)


def test_a_text_that_only_looks_like_a_moment_is_accepted(spark: SparkSession) -> None:
    resolving = private_session(spark)
    checked = check_expression("if(a = 'today', 'x', a)", "key", resolving)
    frame = spark.createDataFrame([("today",), ("now",)], "a string")
    found = with_expression(frame, checked, "value", "key", resolving).collect()
    assert [row.value for row in found] == ["x", "now"]


NO_COLUMNS = ["user", "session_user", "current_date", "current_time", "localtimestamp", "USER",
              "current_catalog", "current_schema", "current_database", "grouping__id"]  # fmt: skip


@pytest.mark.parametrize("name", NO_COLUMNS)
def test_a_name_must_be_a_column_wherever_an_expression_is_computed(
    spark: SparkSession, name: str
) -> None:
    resolving = private_session(spark)
    frame = spark.createDataFrame([("x",)], "a string")
    for text in (f"concat(a, {name})", f"a = {name}", f"if(a = 'x', {name}, a)"):
        for compute in (with_expression, with_value, with_outcome):
            with pytest.raises(InvalidInput) as refused:
                compute(frame, check_expression(text, "key", resolving), "v", "key", resolving)
            assert refused.value.code in (
                "expression_not_computable", "expression_not_deterministic",
            )  # fmt: skip


def test_a_column_may_have_the_name_of_a_function(spark: SparkSession) -> None:
    resolving = private_session(spark)
    frame = spark.createDataFrame([("x",)], "User string")
    checked = check_expression("upper(user)", "key", resolving)
    (row,) = with_expression(frame, checked, "value", "key", resolving).collect()
    assert row.value == "X"


@pytest.mark.parametrize(
    "kind",
    ["STRING COLLATE UNICODE_CI", "STRING COLLATE UTF8_LCASE", "CHAR(3)", "VARCHAR(3)", "INTERVAL",
     "INTERVAL DAY TO SECOND", "INTERVAL YEAR TO MONTH", "VOID", "GEOMETRY(4326)",
     "GEOGRAPHY(4326)",
     "ARRAY<CHAR(3)>", "MAP<STRING COLLATE UNICODE_CI, INT>", "STRUCT<a: STRUCT<b: VOID>>",
     "TIME(6)"],
)  # fmt: skip
def test_types_that_files_do_not_have_are_refused_at_creation(
    spark: SparkSession, kind: str
) -> None:
    with raises("column_type_unsupported 'v'"):
        declared_columns(f"v {kind}", "value_columns")


@pytest.mark.parametrize(
    "text",
    ["cast(a AS STRING COLLATE UNICODE_CI)", "a COLLATE UNICODE_CI", "cast(a AS INTERVAL DAY)",
     "cast(a AS ARRAY<STRING COLLATE UTF8_LCASE>)", "cast(a AS VOID)", "collate(a, 'UNICODE_CI')"],
)  # fmt: skip
def test_no_expression_changes_how_texts_compare(spark: SparkSession, text: str) -> None:
    with raises("expression_not_allowed"):
        check_expression(text, "key")


@pytest.mark.parametrize(
    "text",
    ["d", "cast(d AS string)", "concat(a, d)", "to_json(struct(d))", "cast(array AS string)",
     "upper(f)", "d * 2", "if(a = '', a, d)", "concat_ws('-', a, f)"],
)  # fmt: skip
def test_a_new_routing_key_makes_no_text_of_floating_point_numbers(
    spark: SparkSession, text: str
) -> None:
    resolving = private_session(spark)
    frame = spark.createDataFrame([], "a string, d double, f float, array array<double>")
    checked = check_expression(text, "key", resolving)
    with raises("expression_not_deterministic"):
        with_expression(frame, checked, "value", "key", resolving, new=True)
    with_expression(frame, checked, "value", "key", resolving)  # a stream that has it goes on


@pytest.mark.parametrize("text", ["v", "cast(v AS string)", "concat('a', v)", "to_json(more)"])
def test_a_new_routing_key_makes_no_text_of_a_variant(spark: SparkSession, text: str) -> None:
    resolving = private_session(spark)
    frame = spark.createDataFrame([], "v variant, more struct<v: variant>")
    checked = check_expression(text, "key", resolving)
    with raises("routing_key_type"):
        with_expression(frame, checked, "value", "key", resolving, new=True)
    with_expression(frame, checked, "value", "key", resolving)  # a stream that has it goes on


def test_floating_point_numbers_may_be_in_a_key_as_exact_numbers(spark: SparkSession) -> None:
    resolving = private_session(spark)
    frame = spark.createDataFrame([], "a string, d double")
    for text in ("cast(d AS decimal(18, 2))", "bigint(d)", "if(d > 1, a, 'x')", "hex(bigint(d))"):
        checked = check_expression(text, "key", resolving)
        with_expression(frame, checked, "value", "key", resolving, new=True)


def test_what_is_taken_for_a_plain_column_without_spark_is_one_for_its_parser(
    spark: SparkSession,
) -> None:
    rows = spark.sql("SELECT keyword FROM sql_keywords()").collect()
    words = [row.keyword.lower() for row in rows]
    assert len(words) > 300
    texts = some([*words, *(f"`{word}`" for word in words)], "keywords")
    left_to_spark = set()
    for text in [*texts, "customer", " _a1 ", "`two words`", "`a.b`"]:
        column = plain_column(text)
        try:
            found = check_expression(text, "routing key")
        except InvalidInput:
            assert column is None, text
        else:
            assert column is None or (found.plain and found.columns == [column]), text
            if column is None:
                left_to_spark.add(text)
    assert left_to_spark <= {"current_path", "`current_path`", "`false`", "`null`", "`true`"}
