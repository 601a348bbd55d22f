"""A key that is looked up has the text that Spark makes of it."""

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pytest

from weir.adjunct.lookup import key_text

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
