"""SQL expressions of users, such as a routing key: parse them, check them, and execute what was
checked.

A user who may trigger a DAG must not be able to run code or read the machine that way. So only
columns, literals, operators and listed deterministic built-in functions are accepted. Spark
executes the same tree that was checked, and never parses the text again.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from weir.errors import InvalidInput
from weir.model.names import check_user_columns
from weir.model.stream_configuration import LONGEST_EXPRESSION
from weir.spark.base.java import java_class
from weir.spark.base.session import active, moved, private_session, start_jvm
from weir.spark.users.declared_types import check_type
from weir.spark.users.expression_growth import check_growth

DEEPEST = 50  # parentheses within each other; hundreds may exceed the stack of Spark's parser

FUNCTIONS = frozenset(
    """abs between bigint bin boolean btrim ceil ceiling char_length character_length coalesce
    concat concat_ws crc32 date date_format date_trunc day dayofmonth dayofweek dayofyear
    decimal double element_at extract float floor format_number get_json_object greatest hex
    hour if ifnull initcap int isnotnull isnull lcase least left length lower lpad ltrim md5
    minute mod month named_struct nullif nvl nvl2 pmod quarter regexp_extract regexp_replace replace
    right round rpad rtrim second sha sha1 sha2 sign smallint split split_part string struct substr
    substring substring_index timestamp tinyint to_date to_json to_timestamp translate trim
    trunc ucase unix_date unix_seconds upper weekofyear xxhash64 year""".split()
)
_NODES = frozenset(
    """UnresolvedAttribute UnresolvedExtractValue Literal Cast Add Subtract Multiply Divide
    Remainder IntegralDivide UnaryMinus UnaryPositive And Or Not EqualTo EqualNullSafe LessThan
    LessThanOrEqual GreaterThan GreaterThanOrEqual IsNull IsNotNull In CaseWhen Like RLike
    UnresolvedFunction CreateNamedStruct NamePlaceholder Substring Concat StringTrim
    StringTrimLeft StringTrimRight Extract""".split()
)
# The meaning of these words depends on the time or the user: functions without parentheses, and
# words in a literal such as DATE 'today'.
_MOMENTS = frozenset(
    """current_catalog current_database current_date current_schema current_time current_timestamp
    current_user localtime localtimestamp session_user""".split()
)
_MOMENT_LITERAL = re.compile(
    r"['\"]\s*(now|today|tomorrow|yesterday)\b"
    # These may hide such a word: an escape, a control character, texts that Spark concatenates.
    r"|\\|[\x00-\x08\x0e-\x1f]|['\"]\s+r?['\"]",
    re.IGNORECASE,
)
# Spark turns these texts into the current time when it casts a constant to a date or a time.
_MOMENT = re.compile(r"[\s\x00-\x20]*(now|today|tomorrow|yesterday)\b.*", re.IGNORECASE | re.DOTALL)
_TIMES = ("DateType", "TimestampType", "TimestampNTZType")
_TO_TIME = frozenset("date timestamp to_date to_timestamp".split())


@dataclass(frozen=True)
class Expression:
    """A checked expression: its text, the columns that it uses (of a nested column, the outermost),
    and Spark's tree."""

    text: str
    columns: list[str]
    tree: Any

    @property
    def plain(self) -> bool:
        """Return whether the expression is just a column."""
        return str(self.tree.getClass().getSimpleName()) == "UnresolvedAttribute"


def check_expression(text: str, what: str, session: SparkSession | None = None) -> Expression:
    """Parse an expression, check every node of it, and return it. Needs a JVM, but no Spark
    session.

    `what` names the expression in errors. The parser uses the settings of `session` (see
    `weir.spark.base.session.private_session`).

    Raises InvalidInput that names what is not allowed, or why the text cannot be parsed.
    """
    if not text.strip():
        raise InvalidInput(
            "expression_invalid", f"the {what} is empty; name a column, or write a SQL expression."
        )
    if len(text) > LONGEST_EXPRESSION:
        raise InvalidInput(
            "expression_invalid",
            f"the {what} has {len(text):,} characters; use at most {LONGEST_EXPRESSION:,}.",
        )
    if max(accumulate((c == "(") - (c == ")") for c in text)) > DEEPEST:
        raise InvalidInput(
            "expression_invalid",
            f"the {what} {text!r} has more than {DEEPEST} parentheses within each other; use "
            "fewer.",
        )
    if "${" in text:
        raise InvalidInput(
            "expression_not_allowed",
            f"the {what} {text!r} contains '${{', which Spark may replace by a setting or an "
            "environment variable; leave it out.",
        )
    start_jvm()
    jvm: Any = SparkContext._jvm
    parser = java_class(jvm, "org.apache.spark.sql.catalyst.parser.CatalystSqlParser")()
    try:
        if session is None:
            tree = parser.parseExpression(text)
        else:
            with active(session):
                tree = parser.parseExpression(text)
    except (Py4JJavaError, ParseException) as error:  # the second one if there is a session
        java = getattr(error, "java_exception", None)
        first = str(java.getMessage() if java else error).strip().splitlines()[0]
        raise InvalidInput(
            "expression_invalid",
            f"the {what} {text!r} is not a SQL expression: {first}; the name of a column with "
            "blanks or signs belongs in backquotes.",
        ) from None
    columns: list[str] = []
    check_growth(tree, text, what)
    _walk(tree, text, what, columns)
    if not columns:
        raise InvalidInput(
            "expression_constant",
            f"the {what} {text!r} uses no column, so it would be the same for every event; name a "
            "column.",
        )
    check_user_columns(list({column.lower(): column for column in columns}.values()))
    return Expression(text, columns, tree)


def with_expression(
    frame: DataFrame,
    expression: Expression,
    name: str,
    what: str,
    session: SparkSession,
    *,
    new: bool = False,
) -> DataFrame:
    """Return the rows, in `session`, with the value of the expression as text in a column `name`.

    Raises InvalidInput if it cannot be computed from these rows, or if it depends on the current
    time; if it is `new`, also if it makes text of variants or of floating-point numbers, which each
    version of Java writes in its own way.
    """
    tree = expression.tree
    rows = _with(moved(frame, session), expression, name, what, tree, lambda c: c.cast("string"))
    if new:
        resolved = rows._jdf.queryExecution().analyzed().expressions().last()
        _check_texts(resolved, expression, what)
    return rows


def with_value(
    frame: DataFrame, expression: Expression, name: str, what: str, session: SparkSession
) -> DataFrame:
    """Return the rows, in `session`, with the value of the expression in a column `name`: of its
    own type, and null in the rows in which the expression fails.

    Raises InvalidInput as `with_expression` does.
    """
    # Through the struct: Spark moves TryEval into the branches of a CASE, away from its conditions.
    return _with(
        moved(frame, session), expression, name, what, _outcome(expression),
        lambda c: c.getField("value"),
    )  # fmt: skip


def with_outcome(
    frame: DataFrame, expression: Expression, name: str, what: str, session: SparkSession
) -> DataFrame:
    """Return the rows, in `session`, with a struct in a column `name` that has the value of the
    expression in its field `value`, or that is null in the rows in which the expression fails.

    Raises InvalidInput as `with_expression` does.
    """
    return _with(moved(frame, session), expression, name, what, _outcome(expression), lambda c: c)


def _outcome(expression: Expression) -> Any:
    """Return the tree of a struct with the value of an expression, null where that fails."""
    jvm: Any = SparkContext._jvm
    catalyst = jvm.org.apache.spark.sql.catalyst.expressions
    parser = jvm.org.apache.spark.sql.catalyst.parser.CatalystSqlParser()
    named = [parser.parseExpression("'value'"), expression.tree]
    return catalyst.TryEval(catalyst.CreateNamedStruct(jvm.PythonUtils.toSeq(named)))


def _with(
    rows: DataFrame,
    expression: Expression,
    name: str,
    what: str,
    tree: Any,
    form: Callable[[Column], Column],
) -> DataFrame:
    """Return the rows with the value of a tree in a column `name`, in some form."""
    # Spark takes some names that are no columns for functions: user, current_date, localtimestamp.
    known = {column.lower() for column in rows.columns}
    for used in expression.columns:
        if used.lower() not in known:
            shown = ", ".join([one for one in rows.columns if not one.startswith("_")][:8])
            raise InvalidInput(
                "expression_not_computable",
                f"the {what} {expression.text!r} uses {used!r}, which is no column of the rows "
                f"(they have {shown}); name a column, or write a text in quotes.",
            )
    jvm: Any = SparkContext._jvm
    utils = java_class(jvm, "org.apache.spark.sql.classic.ExpressionUtils")
    column = Column(utils.column(tree))
    try:
        found = rows.withColumn(name, form(column))
    except AnalysisException as error:
        raise InvalidInput(
            "expression_not_computable",
            f"the {what} {expression.text!r} can't be computed from these rows "
            f"({str(error).strip().splitlines()[0]}); correct the expression or the rows.",
        ) from None
    _check_moments(found._jdf.queryExecution().analyzed().expressions().last(), expression, what)
    return found


def _check_moments(node: Any, expression: Expression, what: str) -> None:
    """Refuse a resolved tree in which a constant is cast to a date or time that depends on the
    current time.

    Spark adds such casts itself, for example for `a < 'today'` where `a` is a date.
    """
    children = _each(node.children())
    to_time = node.getClass().getSimpleName() == "Cast" and str(node.dataType()) in _TIMES
    # Columns decide whether it is constant: Spark's `foldable` misses functions that it replaces
    # later.
    if (
        to_time
        and str(children[0].dataType()).startswith("StringType")
        and node.references().isEmpty()
    ):
        literal = children[0].getClass().getSimpleName() == "Literal"
        value = str(children[0].eval(None)) if literal else ""
        if not literal or _MOMENT.fullmatch(value):
            raise InvalidInput(
                "expression_not_deterministic",
                f"the {what} {expression.text!r} has a constant that may mean another time in "
                f"each run ({(value.strip() if literal else children[0].sql())!r}); write the "
                "date.",
            )
    for child in children:
        _check_moments(child, expression, what)


def _check_texts(node: Any, expression: Expression, what: str) -> None:
    """Refuse a resolved tree in which a variant or a floating-point number becomes text (semantics
    1.6)."""
    children = _each(node.children())
    kind = node.getClass().getSimpleName()
    as_text = kind == "Cast" and str(node.dataType()).startswith("StringType")
    if as_text or kind == "StructsToJson":
        given = str(children[0].dataType())
        if "VariantType" in given:
            raise InvalidInput(
                "routing_key_type",
                f"the {what} {expression.text!r} makes text of a variant ({children[0].sql()}), "
                "whose values may be of any type, so that versions of Spark write the same one "
                "differently; take a column of texts, numbers or dates.",
            )
        if "DoubleType" in given or "FloatType" in given:
            raise InvalidInput(
                "expression_not_deterministic",
                f"the {what} {expression.text!r} makes text of floating-point numbers "
                f"({children[0].sql()}), which versions of Java write differently, so that a key "
                "would change its segment; cast them to DECIMAL or BIGINT first.",
            )
    for child in children:
        _check_texts(child, expression, what)


def _walk(node: Any, text: str, what: str, columns: list[str]) -> None:
    kind = node.getClass().getSimpleName()
    if kind == "Alias":
        raise InvalidInput(
            "expression_not_allowed",
            f"the {what} {text!r} gives a column another name; if all of that is a column's name, "
            f"write it in backquotes: `{text.strip()}`.",
        )
    if kind not in _NODES:
        raise InvalidInput(
            "expression_not_allowed",
            f"the {what} {text!r} uses {kind}, which is not allowed; use columns, literals, "
            "operators and plain functions.",
        )
    if kind == "UnresolvedAttribute":
        column = _each(node.nameParts())[0]
        if column.lower() in _MOMENTS:
            raise InvalidInput(
                "expression_not_deterministic",
                f"the {what} {text!r} uses {column}, which changes from run to run; use a column.",
            )
        columns.append(column)
    moment = kind == "Literal" and node.sql().startswith(("DATE", "TIME"))
    if moment and _MOMENT_LITERAL.search(text):
        raise InvalidInput(
            "expression_not_deterministic",
            f"the {what} {text!r} has a literal that means another time in each run; write the "
            "date.",
        )
    to_time = kind == "Cast" and str(node.dataType()) in _TIMES
    if kind == "Cast":
        check_type(node.dataType(), f"the {what} {text!r}")
    if kind == "UnresolvedFunction":
        name = ".".join(_each(node.nameParts())).lower()
        if name not in FUNCTIONS:
            raise InvalidInput(
                "expression_not_allowed",
                f"the {what} {text!r} calls {name}(), which is not allowed; use Spark's built-in "
                "deterministic functions.",
            )
        to_time = name in _TO_TIME
    before = len(columns)
    for child in _each(node.children()):
        _walk(child, text, what, columns)
    if to_time and len(columns) == before:
        raise InvalidInput(
            "expression_not_deterministic",
            f"the {what} {text!r} turns a constant into a date or a time, which may mean another "
            "time in each run; write it as DATE '2024-01-31' or TIMESTAMP '2024-01-31 12:00:00'.",
        )


def _each(sequence: Any) -> list[Any]:
    return [sequence.apply(i) for i in range(sequence.length())]


def check_key(spark: SparkSession, text: str, fields: list[dict[str, Any]]) -> None:
    """Check the routing key that a new stream with these columns is to have. Raises InvalidInput as
    `with_expression` does."""
    session = private_session(spark)
    struct = StructType.fromJson({"type": "struct", "fields": fields})
    key = check_expression(text, "routing key", session)
    with_expression(
        session.createDataFrame([], struct), key, "_weir_key", "routing key", session, new=True
    )
