"""A stream may refuse new events of keys that were erased from it. It knows them by hashes only."""

import hashlib
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from tests.annex.erasure.test_everywhere import ASKED, WHO, where_it_is
from tests.conftest import TestDatabase
from tests.raises import raises
from tests.watching import count_statements
from tests.world.streams import Lane, rows, run, staged, unique
from weir.controller.commit import commit, commit_begun
from weir.controller.staged import announce
from weir.controller.transactions import begin
from weir.errors import Fenced
from weir.kernel.attempt import Attempt
from weir.kernel.writer import stage_table
from weir.model.names import stream_name
from weir.programs.store import StreamStore
from weir.settings import Settings


def made(store: StreamStore, key: str = "customer", **how: Any) -> str:
    name = f"shop/{unique('refusing')}"
    store.create_stream(name, key, **{"segments": 2, "refuse_erased": True, **how})
    return name


def of(*customers: Any) -> list[dict[str, Any]]:
    return [{"customer": one, "n": n} for n, one in enumerate(customers)]


def test_an_append_with_an_erased_key_is_refused_and_nothing_of_it_is_written(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    name = made(store, on_missing_key="spread")
    other = made(store)
    store.append(name, of(WHO, "ann"))
    assert store.erase(name, **ASKED)["events"] == 1
    with raises(f"key_erased 2 customer {name} update_stream refuse_erased no") as refused:
        store.append(name, of("ann", WHO, WHO, None), writer_id="w", batch_id="1")
    assert WHO not in str(refused.value)
    assert where_it_is(WHO, settings, test_database.owner_dsn) == []
    # A null is no key, another spelling is another key, and another stream has erased nothing.
    rest = of("ann", None, WHO.upper(), f" {WHO}", "")
    done = store.append(name, rest, writer_id="w", batch_id="1")
    assert (done.events, done.repeated) == (5, False)
    assert store.append(name, of(WHO), writer_id="w", batch_id="1").repeated
    assert store.append(other, of(WHO)).events == 1
    store.update_stream(name, refuse_erased="no")
    assert store.append(name, of(WHO)).events == 1
    with raises("key_erased 1"):
        store.update_stream(name, refuse_erased="yes")
        store.append(name, of(WHO))


@pytest.mark.parametrize(
    ("column", "erased", "kept"),
    [([17, 18], "17", 18), ([True, False], "true", False)],
    ids=["whole numbers", "booleans"],
)
def test_keys_are_compared_as_texts(
    store: StreamStore, column: list[Any], erased: str, kept: Any
) -> None:
    name = made(store)
    store.append(name, of(*column))
    run(store.database, """SELECT note_erased_keys(stream_id, ARRAY[:key]) FROM stream
        WHERE stream_name = :name""", key=erased, name=name)  # fmt: skip
    with raises("key_erased 1"):
        store.append(name, of(*column))
    assert store.append(name, of(kept)).events == 1


def test_what_was_erased_before_the_setting_or_before_any_event_counts(store: StreamStore) -> None:
    name = made(store, refuse_erased=False)
    store.append(name, of("ann"))
    assert store.erase(name, **ASKED)["events"] == 0  # its events are yet to come
    store.erase(name, "asked", condition="", keys=["bob"], dry_run=True)
    assert store.append(name, of(WHO, "bob")).events == 2
    store.update_stream(name, refuse_erased="yes")
    with raises("key_erased 1"):
        store.append(name, of(WHO, "bob"))
    shown = "SELECT refuse_erased FROM weir.stream_configuration WHERE stream = :name"
    assert rows(store.database, shown, name=name)[0].refuse_erased is True


def test_streams_that_were_made_of_it_refuse_the_key_if_it_is_theirs(store: StreamStore) -> None:
    name, by_key, by_n = made(store), made(store), made(store, "n")
    store.append(name, of(WHO, "ann"))
    group = unique("copies")
    store.create_reader_group(group, [name])
    with store.reader(group) as reader:
        for batch in reader:
            found = of(*batch.events["customer"].to_pylist())
            batch.write(f"stream:{by_key}", found)
            batch.write(f"stream:{by_n}", found)
            batch.commit()
    assert store.erase(name, **ASKED)["events"] == 3
    with raises("key_erased 1"):
        store.append(by_key, of(WHO))
    assert store.append(by_n, of(WHO)).events == 1


def opened(store: StreamStore, name: str) -> Attempt:
    begun = begin(
        store.database, stream_name(name), writer_id="w", batch_id="1", fingerprint="table",
        lease=60, source="test",
    )  # fmt: skip
    assert isinstance(begun, Attempt)
    return begun


@pytest.mark.parametrize("meanwhile", ["erased", "set"])
def test_an_append_that_was_compared_before_is_not_committed(
    store: StreamStore, settings: Settings, meanwhile: str
) -> None:
    name = made(store, refuse_erased=meanwhile == "erased")
    store.append(name, of("ann"))
    if meanwhile == "set":
        store.erase(name, **ASKED)
    table = pa.Table.from_pylist(of(WHO, "bob"))
    written = stage_table(settings.warehouse, opened(store, name), table)
    if meanwhile == "erased":
        store.erase(name, **ASKED)
    else:
        store.update_stream(name, refuse_erased="yes")
    with raises(f"attempt_fenced {name} keys") as fenced:
        commit_begun(store.database, written)
    assert fenced.value.retryable
    assert store.count(name) == 1
    with raises("key_erased 1"):
        stage_table(settings.warehouse, opened(store, name), table)
    written = stage_table(settings.warehouse, opened(store, name), table.slice(1))
    store.erase(name, **ASKED)  # a key that it was compared with
    assert commit_begun(store.database, written)[0].events == 1


def test_an_append_that_waits_for_a_roll_is_compared_too_and_stops_nobody(
    store: StreamStore,
) -> None:
    lane = Lane.made(store.database)
    erase = partial(
        run, lane.database, "SELECT note_erased_keys(:s, ARRAY[:key])", s=lane.stream_id
    )
    run(lane.database, "UPDATE stream SET refuse_erased = true WHERE stream_id = :s",
        s=lane.stream_id)  # fmt: skip
    erase(key="one")
    before = lane.opened()
    erase(key="two")
    since, last = lane.opened(), lane.opened()
    lane.scale("0.0")
    for one in (before, since):
        waits = staged(one, {"0.0": 2})
        lane.database.transaction(lambda c, w=waits: announce(c, w))  # type: ignore[misc]  # the loop's own
    assert lane.commit(last, {"0.0": 4}).rolled
    states = "SELECT state FROM transaction WHERE stream_id = :s ORDER BY transaction_number"
    assert [row.state for row in lane.rows(states)] == ["open", "committed", "committed"]
    with pytest.raises(Fenced, match="attempt_fenced"):
        commit(lane.database, staged(before, {"0.0": 2}))


def test_no_table_has_the_key_or_a_hash_without_salt_and_nobody_reads_the_salt(
    store: StreamStore, settings: Settings, test_database: TestDatabase
) -> None:
    names = [made(store), made(store)]
    for name in names:
        store.append(name, of(WHO))
        store.erase(name, **ASKED)
    plain = hashlib.sha256(WHO.encode()).hexdigest()
    for text in (WHO, plain, plain[:16]):
        assert where_it_is(text, settings, test_database.owner_dsn) == []
    attempts = [opened(store, name) for name in names]
    first, second = (one.erased for one in attempts)
    assert first is not None
    assert second is not None
    assert first.salt != second.salt
    assert first.hashes.isdisjoint(second.hashes)
    assert first.salt.hex() not in repr(attempts)
    [rights] = rows(
        store.database,
        """SELECT array(SELECT concat_ws(' ', r, c, p) FROM unnest(ARRAY['weir_jobs',
            'weir_reader', 'weir_team', 'weir_watcher', 'weir_publisher']) r,
            unnest(ARRAY['salt', 'hashes']) c, unnest(ARRAY['SELECT', 'INSERT', 'UPDATE']) p
            WHERE has_column_privilege(r, 'weir_internal.erased_keys', c, p)) AS of_columns,
            array(SELECT r || ' ' || f.proname
            FROM unnest(ARRAY['weir_reader', 'weir_watcher', 'weir_publisher']) r, pg_proc f
            WHERE f.proname IN ('begin_append', 'note_erased_keys', 'erased_keys_of')
            AND has_function_privilege(r, f.oid, 'EXECUTE')) AS of_functions""",
    )
    assert (rights.of_columns, rights.of_functions) == ([], [])
    kept = "SELECT count(*) FROM erased_keys"
    assert rows(store.database, kept)[0][0] == 2
    store.seal_stream(names[0])
    store.delete_stream(names[0], dry_run=False, unread_too=True)
    assert rows(store.database, kept)[0][0] == 1


def test_an_append_to_a_stream_that_refuses_sends_as_many_statements(store: StreamStore) -> None:
    sent = count_statements(store.database)
    counts = set()
    for refuses in (False, True):
        name = made(store, refuse_erased=refuses)
        store.erase(name, **ASKED)
        del sent[:]
        store.append(name, of("ann"), writer_id="w", batch_id="1")
        counts.add(len(sent))
    assert len(counts) == 1
