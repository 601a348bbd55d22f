"""A key that is looked up has the text that Spark makes of it."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from weir.adjunct.lookup import in_type, key_text

NEW_YORK = timezone(timedelta(hours=-4))


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("a", "a"),
        (7, "7"),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (date(2013, 6, 1), "2013-06-01"),
        (datetime(2013, 6, 1, 9, tzinfo=UTC), "2013-06-01 09:00:00"),
        (datetime(2013, 6, 1, 5, tzinfo=NEW_YORK), "2013-06-01 09:00:00"),
        (datetime(2013, 6, 1, 9, 0, 0, 120_000), "2013-06-01 09:00:00.12"),
    ],
)
def test_a_key_is_looked_up_by_the_text_that_spark_casts_it_to_in_utc(key: Any, text: str) -> None:
    assert key_text(key) == text


@pytest.mark.parametrize(
    ("key", "kind", "text"),
    [
        (7.0, "long", "7"),
        (7.5, "long", "7.5"),
        (7, "decimal(9,2)", "7.00"),
        (7.001, "decimal(9,2)", "7.001"),
        (1e300, "decimal(38,10)", "1e+300"),
        (float("nan"), "long", "nan"),
        (True, "boolean", "true"),
        (7.0, "string", "7.0"),
    ],
)
def test_a_number_is_looked_up_in_the_type_of_the_keys(key: Any, kind: str, text: str) -> None:
    assert key_text(in_type(key, kind)) == text
