"""The order of each key, over scales by the policy, with writers and readers beside them."""

from collections import defaultdict
from functools import partial
from typing import Any

import pyarrow as pa

import weir
from tests.controller.operations import equal_ranges
from tests.world.groups import Group
from tests.world.scaling import by_rate, pass_time
from tests.world.streams import Lane, at_once
from weir.controller.ownership import read_installation
from weir.database.connection import Database
from weir.programs.opening import shared
from weir.scaling.run import scale_by_load
from weir.settings import Settings
from weir.warehouse.marker import Marker, write_marker

WRITERS, KEYS = ("a", "b"), 30
# Per round, the events of each writer, and the seconds that pass after it.
ROUNDS = [(300, 60)] * 26 + [(2, 7200)] * 8


def test_each_key_is_read_in_the_order_of_its_writer_while_the_segments_follow_the_load(
    database: Database, settings: Settings
) -> None:
    write_marker(settings.warehouse, Marker(read_installation(database).installation_id))
    lane = Lane.made(database, segments=1)
    by_rate(lane, target_rate=1, scale_cooldown=60)
    group = Group.made(lane)
    written: defaultdict[str, list[int]] = defaultdict(list)
    batches: list[tuple[int, list[dict[str, Any]]]] = []

    def append(writer: str, number: int, count: int) -> None:
        rows = []
        for i in range(count):
            key = f"{writer}{(i * i + number) % KEYS}"
            written[key].append(len(written[key]))
            rows.append((key, written[key][-1]))
        shared(settings).append(
            str(lane.name), pa.table({"key": [k for k, _ in rows], "n": [n for _, n in rows]}),
            writer_id=writer, batch_id=str(number),
        )  # fmt: skip

    def read(name: str) -> None:
        store = weir.StreamStore(settings, database, name)
        reading = store.reader(
            group.name, reader_id=name, batch_events=500, expected_readers=len(WRITERS)
        )
        with reading as reader:
            for batch in reader:
                batches.append((batch.batch_id, batch.events.to_pylist()))
                batch.commit()

    def scale(number: int) -> None:
        for one in scale_by_load(database, equal_ranges, request_id=f"run {number}"):
            assert "error" not in one

    for number, (count, seconds) in enumerate(ROUNDS):
        done = at_once(
            *(partial(append, writer, number, count) for writer in WRITERS),
            *(partial(read, name) for name in WRITERS),
            partial(scale, number),
        )
        assert [one for one in done if isinstance(one, Exception)] == []
        pass_time(lane, seconds)
    read("last")

    causes = [(row.cause, row.splits, row.merges) for row in lane.epochs()]
    assert sum(cause == "policy" for cause, _, _ in causes) >= 4, causes
    assert causes[-1][1] > 0
    assert causes[-1][2] > 0, "it was split and merged"
    found: defaultdict[str, list[int]] = defaultdict(list)
    for _, events in sorted(batches, key=lambda one: one[0]):
        for event in events:
            found[event["key"]].append(event["n"])
    assert found == written
    group.check_positions()
