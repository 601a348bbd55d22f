"""Files are found and told apart wherever they lie, and whatever they are called."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.installation import Installation
from tests.spark.test_read import rows

pytestmark = pytest.mark.release


@pytest.mark.parametrize("folder", ["with space", "per%20cent", "[1]{2}*?", "häuser#1"])
def test_the_warehouse_may_lie_in_a_folder_of_any_name(weir: Installation, folder: str) -> None:
    settings = replace(weir.settings, warehouse=str(Path(weir.settings.warehouse) / folder))
    weir = Installation(weir.spark, weir.database, settings)
    stream = weir.create(segments=2)
    weir.append(stream, rows(1, 50))
    assert len(weir.check(stream, read=True)) == 50


@pytest.mark.release
def test_numbers_of_transactions_that_lie_far_apart_make_no_large_plan(weir: Installation) -> None:
    """As they do after recoveries: each goes on a million further than what is known."""
    stream = weir.create(segments=2)

    def length() -> int:
        plan = weir.frame(stream, "none")._jdf.queryExecution().analyzed()
        return len(plan.toJSON())

    for seed in range(12):
        weir.append(stream, rows(seed, 30))
    before = length()
    for seed in range(12, 24):
        if seed % 3 == 0:
            weir.database.transaction(
                lambda c: c.exec_driver_sql(
                    "UPDATE stream SET next_transaction_number = next_transaction_number + 999999"
                )
            )
        weir.append(stream, rows(seed, 30))
    assert weir.value("SELECT max(transaction_number) FROM transaction") > 3_000_000
    assert length() < 4 * before
    assert len(weir.check(stream, read=True)) == 24 * 30
