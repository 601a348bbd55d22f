"""Several appends in one transaction: all of them or none, also in a retry."""

import psycopg2
import pytest
from sqlalchemy.exc import DBAPIError

from tests.conftest import TestDatabase
from tests.raises import raises
from tests.spark.installation import Installation
from weir.model.names import StreamName, stream_name
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


@pytest.mark.release
def test_what_raises_leaves_nothing_behind(weir: Installation) -> None:
    stream = weir.create("s/one")
    frame = weir.spark.createDataFrame([("key", 1)], "k string, n long")

    def half() -> None:
        with transaction(weir.appender, writer_id="test", batch_id="half") as whole:
            whole.append(stream, frame)
            whole.append(stream_name("s/nowhere"), frame)

    with raises("stream_not_found s/nowhere"):
        half()
    assert visible(weir, [stream]) == []
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0


@pytest.fixture
def refusing(weir: Installation, test_database: TestDatabase) -> Installation:
    """An installation whose database refuses each data file, with an error that Weir has no word
    for."""
    with psycopg2.connect(test_database.owner_dsn) as connection:
        connection.cursor().execute(
            """CREATE FUNCTION weir.refuse() RETURNS trigger LANGUAGE plpgsql AS
                $$ BEGIN RAISE EXCEPTION USING ERRCODE = '22P05', MESSAGE = 'no'; END $$;
            CREATE TRIGGER refuse BEFORE INSERT ON weir_internal.data_file
                FOR EACH ROW EXECUTE FUNCTION weir.refuse()"""
        )
    return weir


@pytest.mark.release
def test_a_commit_that_the_database_refuses_leaves_no_open_transaction(
    refusing: Installation,
) -> None:
    weir = refusing
    stream = weir.create("s/one")
    with pytest.raises(DBAPIError, match="no"):
        weir.append(stream, [("key", 1)])
    assert [row.state for row in weir.query("SELECT state FROM transaction")] == ["aborted"]
    assert weir.value("SELECT count(*) FROM garbage WHERE reason = 'aborted'") == 1
    with pytest.raises(DBAPIError, match="no"):
        append_both(weir, [stream], "whole")
    assert weir.value("SELECT count(*) FROM transaction WHERE state = 'open'") == 0
