"""What the operator tells OpenLineage: names, columns and sides; and that nothing of it is needed
until it asks. Its provider is installed only by tests/acceptance/test_open_lineage.py."""

import sys

from tests.world.groups import Group
from tests.world.streams import Lane, staged
from weir.airflow.open_lineage import Thing, things_of
from weir.airflow.operators import WeirJobOperator
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_start


def test_a_task_names_the_streams_with_their_columns_the_files_and_the_folders(
    database: Database,
) -> None:
    source, target = Lane.made(database), Lane.made(database)
    ingest = RunId("weir_ingest", "manual", "ingest")
    done = source.append({"0.0": 3}, inputs=["orders.csv"], source=str(ingest))
    database.transaction(lambda c: record_start(c, ingest, "ingest", {}))
    report = {"stream": str(source.name), "transaction_number": done.transaction_number}
    database.transaction(lambda c: record_end(c, ingest, "succeeded", report=report))
    [[known]] = source.rows("SELECT installation_id FROM installation")
    columns = (("key", "string"),)

    def stream(lane: Lane) -> Thing:
        return Thing(f"weir://{known}", str(lane.name), columns)

    told = database.transaction(lambda c: things_of(c, ingest))
    assert told == ([Thing("file", "orders.csv")], [stream(source)])

    consume = RunId("shop", "scheduled", "totals", 0)
    reader = Group.made(source).reader(str(consume))
    batch = reader.must_open()
    attempt = target.opened(batch.identity, writer=f"group {reader.group.name}", source="s")
    folder = {"kind": "parquet", "output": "o", "root": "s3a://lake/out", "path": "o/batch=1/"}
    reader.commit(batch, [staged(attempt, {"0.0": 1, "1.0": 1})], outputs=[folder])
    told = database.transaction(lambda c: things_of(c, consume))
    assert told.inputs == [stream(source)]
    assert sorted(told.outputs) == sorted([stream(target), Thing("s3a://lake", "out/o/batch=1/")])
    nothing = RunId("shop", "another", "totals")
    assert database.transaction(lambda c: things_of(c, nothing)) == ([], [])


def test_nothing_is_told_by_a_task_that_did_not_run_and_nothing_imported_for_it() -> None:
    operator = WeirJobOperator(task_id="t", job="ingest")
    assert operator.get_openlineage_facets_on_complete(None) is None
    assert not [name for name in sys.modules if name.startswith("openlineage")]
