"""What is wrong with a definition is said when it is given, in one sentence."""

from typing import Any

import pytest

from tests.raises import raises
from tests.spark.installation import Installation
from weir.errors import InvalidInput
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName
from weir.spark.adjuncts.check import check_definition


def check(weir: Installation, stream: StreamName, **definition: Any) -> None:
    check_definition(
        weir.spark, weir.database, weir.settings, "s/store", stream, AdjunctDefinition(**definition)
    )


def test_mistakes_of_a_definition_are_named(weir: Installation) -> None:
    stream = weir.create()
    check(weir, stream, key="anything", value="struct(a, b)")  # there are no columns yet
    with raises("expression_not_allowed"):
        check(weir, stream, value="java_method('java.lang.System', 'getenv')")
    weir.append(stream, [("a", 1)])
    for good in (
        {}, {"key": "n"}, {"value": "named_struct('n', n)"}, {"delete_when": "n is null"},
        {"key": "concat(k, n)", "value": "if(n > 0, k, null)"},
    ):  # fmt: skip
        check(weir, stream, **good)
    for key_type in ("string, b int", "double", "string collate unicode_ci", "array<int>", "void",
                     "char(3)", "string string"):  # fmt: skip
        with pytest.raises(InvalidInput) as refused:
            check(weir, stream, key="tests.nowhere:f", key_type=key_type)
        assert refused.value.code in ("columns_invalid", "column_type_unsupported"), key_type
    for name in ("user", "current_user", "current_date", "localtimestamp", "session_user"):
        for wrong in ({"key": name}, {"value": f"struct(n, {name})"}, {"value": name},
                      {"delete_when": f"{name} = 'root'"}):  # fmt: skip
            with pytest.raises(InvalidInput) as refused:
                check(weir, stream, **wrong)
            assert refused.value.code.startswith("expression_not"), wrong
    with raises("expression_grows hex()"):
        check(weir, stream, value="hex(" * 40 + "k" + ")" * 40)
    for code, wrong in {
        "expression_not_computable": {"key": "missing"},
        "expression_invalid": {"value": "n +"},
        "expression_not_allowed": {"key": "rand() + n"},
        "adjunct_key_type": {"key": "cast(n as double)"},
        "adjunct_value_type": {"value": "if(n > 0, null, null)"},
        "adjunct_condition_type": {"delete_when": "n"},
        "column_name_reserved": {"value": "named_struct('_weir_key', n)"},
        "function_not_allowed": {"value": "os:system", "value_columns": "a INT"},
        "columns_invalid": {"value": "m:f", "value_columns": "not columns at all"},
        "function_type_missing": {"value": "m:f"},
    }.items():
        with raises(code):
            check(weir, stream, **wrong)
