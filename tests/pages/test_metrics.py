"""Metrics say what views say, for Prometheus; the cost of a group is what its batches took and what
it makes streams keep."""

from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import TestDatabase
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run
from weir.pages import metrics
from weir.source_tree import REPOSITORY


@pytest.fixture
def lane(test_database: TestDatabase) -> Iterator[Lane]:
    """A new stream of two segments, 0.0 and 1.0."""
    database = test_database.open()
    yield Lane.made(database)
    database.dispose()


def test_prometheus_reads_what_the_views_say(lane: Lane) -> None:
    group = Group.made(lane)
    lane.append({"0.0": 3, "1.0": 4})
    reader = group.reader()
    reader.commit(reader.must_open(3))
    seen = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(
            metrics.as_text(metrics.rows_of(lane.database))
        )
        for sample in family.samples
    }
    stream = ("stream", str(lane.name))
    assert seen["weir_stream_appended_events_total", stream] == 7
    assert seen["weir_stream_segments", stream] == 2
    both = (("reader_group", group.name), stream)
    assert seen["weir_group_unread_events", *both] == 4
    assert seen["weir_group_readers", both[0]] == 1
    assert seen["weir_group_opened_batches_total", both[0]] == 1
    for view, name in (("lag", "weir_group_lost_events_total"), ("streams", "weir_stream_bytes")):
        [[count]] = rows(lane.database, f"SELECT count(*) FROM {view}")  # one of two names
        assert len([key for key in seen if key[0] == name]) == count


def test_each_metric_is_described_and_in_the_documentation() -> None:
    assert REPOSITORY is not None
    files = (REPOSITORY / "sql").rglob("*metrics.sql")
    text = "".join(path.read_text() for path in files)
    page = (
        (REPOSITORY / "docs/operations.md").read_text().split("\n## Metrics\n")[1].split("\n## ")[0]
    )
    for name in metrics.metrics():
        assert f"'{name}'" in text
        assert f"| `{name}` |" in page
    assert text.count("'weir_") == len(metrics.metrics())
    assert page.count("| `weir_") == len(metrics.metrics())


def test_the_cost_of_a_group_is_what_it_read_and_what_only_it_makes_a_stream_keep(
    lane: Lane,
) -> None:
    run(
        lane.database,
        "UPDATE stream SET retention = 'consumed' WHERE stream_name = :n",
        n=str(lane.name),
    )
    slow, other, gone = (Group.made(lane, subscriber=True) for _ in range(3))
    lane.append({"0.0": 5, "1.0": 5})

    def held(group: Group) -> int:
        [row] = group.rows("SELECT * FROM subscribers WHERE reader_group = :name", name=group.name)
        return int(row.held_bytes)

    def cost(group: Group) -> Any:
        [row] = group.rows("SELECT * FROM cost WHERE reader_group = :name", name=group.name)
        assert row.kept_bytes == held(group)
        return row

    assert (cost(slow).batches, cost(slow).kept_alone_bytes) == (None, 0)
    for group in (gone, other):
        group.reader().read_all()
        group.checkpoint()
    reader = slow.reader()
    reader.commit(reader.must_open(1))
    assert (cost(slow).batches, cost(slow).attempts, cost(slow).events) == (1, 1, 5)
    assert cost(slow).read_bytes > 0
    assert cost(slow).kept_alone_bytes == held(slow) > 0, "all others have read everything"
    lane.append({"0.0": 7})
    assert held(other) > 0
    assert cost(slow).kept_alone_bytes == held(slow) - held(other)
    assert cost(other).kept_alone_bytes == 0, "what it holds, slower ones hold, too"
