"""Several appends in one transaction: all of them or none, also in a retry."""

from tests.spark.installation import Installation
from weir.model.names import StreamName
from weir.spark.appends.transaction import Transaction, transaction


def append_both(weir: Installation, streams: list[StreamName], batch: str) -> Transaction:
    with transaction(weir.appender, writer_id="test", batch_id=batch) as whole:
        for i, stream in enumerate([*streams, streams[0]]):
            frame = weir.spark.createDataFrame([(f"key {n}", 10 * i + n) for n in range(5)],
                                               "k string, n long")  # fmt: skip
            whole.append(stream, frame)
            assert visible(weir, streams) == []
    return whole


def visible(weir: Installation, streams: list[StreamName]) -> list[int]:
    facts = [weir.check(stream) for stream in streams]
    return sorted(n for one in facts if not one.empty for n in one["n"])


def test_appends_to_two_streams_become_visible_at_once_and_only_once(weir: Installation) -> None:
    streams = [weir.create("s/one"), weir.create("s/two")]
    done = append_both(weir, streams, "whole")
    everything = [*range(5), *range(10, 15), *range(20, 25)]
    assert visible(weir, streams) == everything
    assert [(str(c.stream), c.events) for c in done.committed] == [
        ("s/one", 5), ("s/two", 5), ("s/one", 5),
    ]  # fmt: skip
    with transaction(weir.appender, writer_id="test", batch_id="whole") as again:
        frame = weir.spark.createDataFrame([("key", 99)], "k string, n long")
        again.append(streams[0], frame)
    assert again.committed[0].repeated
    assert visible(weir, streams) == everything
