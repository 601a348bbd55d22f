"""SQL expressions that users give (a routing key): parsed by Spark's own parser and checked.

Whoever may trigger a DAG may not thereby run code or read the machine: only columns, literals,
operators and deterministic built-in functions from a list are accepted.
"""

import re
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from weir.errors import InvalidInput

FUNCTIONS = frozenset(
    """abs between bigint bin boolean btrim ceil ceiling char_length character_length coalesce
    concat concat_ws crc32 date date_format date_trunc day dayofmonth dayofweek dayofyear
    decimal double element_at extract float floor format_number get_json_object greatest hex
    hour if ifnull initcap int isnotnull isnull lcase least left length lower lpad ltrim md5
    minute mod month nullif nvl nvl2 pmod quarter regexp_extract regexp_replace replace right
    round rpad rtrim second sha sha1 sha2 sign smallint split split_part string struct substr
    substring substring_index timestamp tinyint to_date to_json to_timestamp translate trim
    trunc ucase unix_date unix_seconds upper weekofyear xxhash64 year""".split()
)
_NODES = frozenset(
    """UnresolvedAttribute UnresolvedExtractValue Literal Cast Add Subtract Multiply Divide
    Remainder IntegralDivide UnaryMinus UnaryPositive And Or Not EqualTo EqualNullSafe LessThan
    LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull In CaseWhen Like RLike
    UnresolvedFunction Substring Concat StringTrim StringTrimLeft StringTrimRight Extract""".split()
)
# What these mean changes with the moment, or with who asks: words that need no parentheses, and
# words in a literal such as DATE 'today'.
_MOMENTS = frozenset(
    """current_catalog current_database current_date current_schema current_time current_timestamp
    current_user localtime localtimestamp session_user""".split()
)
_MOMENT_LITERAL = re.compile(r"['\"]\s*(now|today|tomorrow|yesterday)\b", re.IGNORECASE)


def check_expression(text: str, what: str) -> list[str]:
    """The columns that an expression uses (of a nested one, the outermost). Needs a JVM, but no
    session.

    Raises InvalidInput naming what is not allowed, or how it can't be parsed.
    """
    if not text.strip():
        raise InvalidInput(f"the {what} is empty; name a column, or write a SQL expression.")
    SparkContext._ensure_initialized()
    jvm: Any = SparkContext._jvm
    parser = jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
    try:
        tree = parser.parseExpression(text)
    except (Py4JJavaError, ParseException) as error:  # the latter once there is a session
        java = getattr(error, "java_exception", None)
        first = str(java.getMessage() if java else error).strip().splitlines()[0]
        raise InvalidInput(f"the {what} {text!r} is not a SQL expression: {first}") from None
    columns: list[str] = []
    _walk(tree, text, what, columns)
    if not columns:
        raise InvalidInput(f"the {what} {text!r} uses no column; every event would be the same.")
    return columns


def _walk(node: Any, text: str, what: str, columns: list[str]) -> None:
    kind = node.getClass().getSimpleName()
    if kind not in _NODES:
        raise InvalidInput(
            f"the {what} {text!r} uses {kind}, which is not allowed: use columns, literals, "
            "operators and plain functions."
        )
    if kind == "UnresolvedAttribute":
        column = _each(node.nameParts())[0]
        if column.lower() in _MOMENTS:
            raise InvalidInput(
                f"the {what} {text!r} uses {column}, which is another one each time; use a column."
            )
        columns.append(column)
    moment = kind == "Literal" and node.sql().startswith(("DATE", "TIME"))
    if moment and _MOMENT_LITERAL.search(text):
        raise InvalidInput(
            f"the {what} {text!r} has a literal that is another moment each time; write the date."
        )
    if kind == "UnresolvedFunction":
        name = ".".join(_each(node.nameParts())).lower()
        if name not in FUNCTIONS:
            raise InvalidInput(
                f"the {what} {text!r} calls {name}(), which is not among the functions that are "
                "allowed (deterministic and built in)."
            )
    for child in _each(node.children()):
        _walk(child, text, what, columns)


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.length())]


def parse_columns(spark: SparkSession, ddl: str, used: list[str]) -> list[dict[str, Any]]:
    """The columns that a user wrote as SQL, in Spark's JSON form; `used` must be among them."""
    try:
        struct = StructType.fromDDL(ddl)
        if not isinstance(struct, StructType):
            raise InvalidInput(f"{ddl!r} is one type; write columns: id BIGINT, name STRING.")
    except (ParseException, Py4JJavaError) as error:
        first = str(error).strip().splitlines()[0]
        raise InvalidInput(f"the columns {ddl!r} can't be read: {first}") from None
    for field in struct.fields:
        if not field.nullable:
            raise InvalidInput(
                f"column {field.name!r} is NOT NULL, which a stream does not check: leave that out "
                "(rows without a routing key have on_missing_key)."
            )
    names = {name.lower() for name in struct.fieldNames()}
    for name in used:
        if name.lower() not in names:
            raise InvalidInput(f"the routing key uses {name!r}, which is not among the columns.")
    return list(struct.jsonValue()["fields"])
