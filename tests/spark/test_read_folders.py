"""Files are found and told apart wherever they lie, and whatever they are called."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.spark.installation import Installation
from tests.spark.test_read import rows
from tests.spark.xxh64 import position
from weir.controller.read_plan import plan_of_stream
from weir.kernel import stage
from weir.kernel.attempt import Attempt

pytestmark = pytest.mark.release


@pytest.mark.parametrize("folder", ["with space", "per%20cent", "[1]{2}*?", "häuser#1"])
def test_the_warehouse_may_lie_in_a_folder_of_any_name(weir: Installation, folder: str) -> None:
    settings = replace(weir.settings, warehouse=str(Path(weir.settings.warehouse) / folder))
    weir = Installation(weir.spark, weir.database, settings)
    stream = weir.create(segments=2)
    weir.append(stream, rows(1, 50))
    assert len(weir.check(stream, read=True)) == 50


@pytest.mark.parametrize("ending", ["0123456789ab", "00000000c42", "0000c123456"])
def test_several_files_of_one_folder_are_told_apart_whatever_their_names_end_in(
    weir: Installation, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark names a file part-<task>-<uuid>.c<number>: in a tenth of all uuids the end looks like
    # such a number, too.
    monkeypatch.setattr(stage, "ROWS_PER_FILE", 10)
    stream = weir.create(segments=2)
    opened = weir.appender.begin_frame(stream, "test", "several files")
    assert isinstance(opened, Attempt)
    frame = weir.spark.createDataFrame(rows(1, 95), "k string, n long").coalesce(1)
    (staged,) = weir.appender.stage_frame([opened], frame)
    warehouse = Path(weir.settings.warehouse)
    files = []
    for file in staged.files:
        folder, name = file.path.rsplit("/", 1)
        uuid, rest = name.split(".", 1)
        renamed = f"{folder}/{uuid[: -len(ending)]}{ending}.{rest}"
        (warehouse / file.path).rename(warehouse / renamed)
        files.append(replace(file, path=renamed))
    weir.appender.commit([replace(staged, files=tuple(files))])
    assert len(files) > 8
    assert max(file.events for file in files) == 10
    assert len(weir.check(stream, read=True)) == 95


def test_a_segment_can_be_read_by_many_commits_at_once(weir: Installation) -> None:
    stream = weir.create(segments=3)
    for seed in range(12):
        weir.append(stream, rows(seed, 9))
    facts = weir.check(stream, read=True)
    assert facts["_clock"].nunique() == 12
    (_, slices, _) = weir.database.transaction(lambda c: plan_of_stream(c, stream))
    assert {s.segment_id for s in slices} == {0, 1, 2}
    assert all(
        s.key_low <= position(k) < s.key_high
        for s in slices
        for k in [
            facts[(facts["_segment"] == s.segment_id) & (facts["_offset"] == s.start_offset)][
                "k"
            ].item()
        ]
    )


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
