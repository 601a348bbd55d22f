"""A regular expression that people give keeps nobody busy for ever."""

import re
import time

import pytest
from pyspark.sql import SparkSession

from tests.raises import raises
from weir.spark.expressions import check_expression
from weir.spark.pattern_time import repeated_repetition

# Patterns, each with a part of a text that makes it try for ever if the part comes often enough.
SLOW = {
    "^(a+)+$": "a", "^(a*)*$": "a", "^(?:a|a)*$": "a", "^(a|aa)+$": "a", "^(?:a?a)*$": "a",
    "^([a-z]+)*$": "a", r"^(\w+\s?)*$": "a", "^((a)|(a))+$": "a", "^(?:(?:a+)b?){2,}$": "a",
    "^(a{1,30}){1,30}$": "a", r"^(?:[0-9]+\.?)+$": "1", "^(x+x+)+y": "x", "(?<n>a+)+$": "a",
    "^(?i:a|A)*$": "a", "^(a+?)+$": "a", r"^(\Qa\E+)+$": "a", "^(.*,?){11}$": "a",
}  # fmt: skip
QUICK = [
    "^[A-Z]{2}[0-9]+$", "^(.*)-(.*)$", "(foo|bar)+", "(?:a|b)*", r"\((.*?)\)", "[(+*]+", "a++b",
    "^(?:[0-9]++,)*[0-9]+$", "(?>a+)+", r"\Q(a+)+\E", "[^)]*[a[b+]+]*", "(ab)+", "(a{3}){12}",
    r"^(\d+)\.(\d+)$", "(a+){3}", "", "(", "*", "a|", "(?:https?|ftp)://[^/]+", "x{2,5}y*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", SLOW)
def test_what_repeats_a_repetition_is_found(pattern: str) -> None:
    assert repeated_repetition(pattern)


@pytest.mark.parametrize("pattern", QUICK)
def test_what_people_write_is_no_such_pattern(pattern: str) -> None:
    assert repeated_repetition(pattern) == ""


def test_patterns_that_are_slow_in_python_are_refused() -> None:
    """An independent judge: Python's expressions try in the same way as Java's."""

    def seconds(pattern: str, text: str) -> float:
        begun = time.process_time()
        re.search(pattern, text)
        return time.process_time() - begun

    for pattern, part in SLOW.items():
        try:
            re.compile(pattern)
        except re.error:
            continue  # Java's own
        quick, slow = (seconds(pattern, part * count + "!") for count in (12, 20))
        assert slow > 3 * quick or slow < 1e-3, pattern


def test_expressions_with_slow_or_unknown_patterns_are_refused(spark: SparkSession) -> None:
    for text in ("a rlike '^(x+)+$'", "regexp_replace(a, '(x*)*y', '')", "regexp_extract(a, b, 1)",
                 "split(a, '(x|x)*')[0]", "concat(a, cast(a rlike b as string))"):  # fmt: skip
        with raises(f"expression_slow {text!r}" if "'" not in text else "expression_slow"):
            check_expression(text, "key", spark)
    check_expression("regexp_extract(a, '^([^-]+)-', 1)", "key", spark)
