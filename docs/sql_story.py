"""A small story for the example queries: some months of flights, and those who read them.

Everything is done by the library as jobs do it. Only the files are invented, and the hours in which
a second stream was written: what the queries show is in Postgres.
"""

from collections.abc import Mapping
from functools import partial

from sqlalchemy import Connection, text

from weir.adjunct.builds import Build, begin_build
from weir.adjunct.publication import Built, publish_build
from weir.adjunct.stores import define_store
from weir.controller.commit import commit
from weir.controller.scale import scale
from weir.controller.streams import create_stream
from weir.controller.transactions import InputFile, begin
from weir.database.connection import Database
from weir.errors import InvariantViolation
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.names import stream_name
from weir.model.schema import new_field
from weir.model.segment import parse_segment_name
from weir.queries.adjunct.versions import AdjunctFile
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.batches.lifecycle import commit_batch, open_in
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.checkpoints.lifecycle import checkpoint
from weir.reader_groups.groups.lifecycle import create_reader_group
from weir.reader_groups.groups.readers import join
from weir.retention.capture import capture
from weir.retention.run import retain

FLIGHTS = stream_name("nyc/flights")
CARRIERS = stream_name("nyc/carrier-changes")
POSITIONS = stream_name("nyc/positions")
FIELDS = [
    new_field("carrier", "string"),
    new_field("dep_delay", "double"),
]
READER = "delays_by_carrier/winter/read/0"
LEASE = 3600.0
BUDGET = Budget(50_000, 2**32, 5_000)


def tell(database: Database) -> None:
    """Make the stream and what happens to it."""
    create_stream(
        database, FLIGHTS, segments=2, routing_key="carrier", retention="consumed",
        request_id="weir_create_stream/flights/create",
    )  # fmt: skip
    _append(database, "2013-01", {"0.0": 14_000, "1.0": 13_004})

    # February is late: it begins before the split and is committed after it.
    late = _begin(database, "2013-02")
    scale(
        database, FLIGHTS, seal=["0.0"], parts=2, request_id="weir_scale_stream/split/scale"
    )  # fmt: skip
    _append(database, "2013-03", {"2.1": 6_200, "3.1": 8_300, "1.0": 14_334})
    capture(database)
    _commit(database, late, {"0.0": 12_951, "1.0": 12_000})

    create_reader_group(database, "delays", [FLIGHTS], request_id="weir_create/delays/create")
    create_reader_group(
        database, "audit", [FLIGHTS], subscriber=False, request_id="weir_create/audit/create"
    )
    delays = join(database, "delays", READER, LEASE)
    opened = partial(
        open_in, group="delays", reader_id=READER, token=delays, reading=Reading(BUDGET),
        lease=LEASE,
    )  # fmt: skip
    batch = database.transaction(opened)
    if batch is None:
        raise InvariantViolation("story_broken", "there is nothing to read in the story")
    output = {
        "kind": "parquet", "output": "delays", "root": "s3a://lake/output",
        "path": "delays/batch=1/attempt=1/",
    }  # fmt: skip
    commit_batch(database, batch, lease=LEASE, outputs=[output])
    checkpoint(database, "delays", name="after winter", request_id="weir_checkpoint/1/checkpoint")

    # In spring two quiet segments become one again.
    scale(
        database, FLIGHTS, seal=["2.3", "3.3"], parts=1,
        request_id="weir_scale_stream/merge/scale",
    )  # fmt: skip
    _append(database, "2013-04", {"4.4": 15_000, "1.3": 13_330})
    capture(database)
    retain(database)

    # Now: May is being written, the group reads on, and a checkpoint waits for what it reads.
    _begin(database, "2013-05")
    database.transaction(opened)
    checkpoint(
        database, "delays", name="spring", barrier=True, request_id="weir_checkpoint/2/checkpoint"
    )

    _report_positions(database)
    _keep_carriers(database)


def _keep_carriers(database: Database) -> None:
    """Keep a table of the carriers from a stream of what changes about them."""
    create_stream(
        database, CARRIERS, routing_key="carrier", segments=1, retention="consumed",
        request_id="weir_create_stream/3/create",
    )  # fmt: skip
    define_store(
        database, "nyc/carriers", CARRIERS, AdjunctConfiguration(history=2_592_000),
        AdjunctDefinition(delete_when="op = 'delete'"),
        request_id="weir_define_adjunct_store/1/define",
    )  # fmt: skip
    build = begin_build(
        database, "nyc/carriers", builder="weir_adjunct/1/adjunct", lease=LEASE
    )  # fmt: skip
    if not isinstance(build, Build):
        raise InvariantViolation("story_broken", "the story has a version of nyc/carriers already")
    files = [AdjunctFile(f"{build.folder}table/part-00000.parquet", 16, 2_140, 1 << 44, 9 << 49)]
    built = Built(FIELDS, files, (), (), 16, 16, 0, 0, 0)
    publish_build(database, build, built)


def record_jobs(database: Database) -> None:
    """Record some runs of jobs, as weir.job_runs shows them: one has failed, and one is at work."""
    runs = [
        ("weir_ingest", "2013-01", "ingest", "succeeded", 41, None, None),
        ("weir_ingest", "2013-02", "ingest", "succeeded", 38, None, None),
        ("weir_process", "2013-03", "process", "failed", 12, None,
         "function 'shop:totals' is not in an allowed package (flights); add its package to "
         "function_packages in weir.toml. [function_not_allowed]"),
        ("weir_process", "2013-04", "process", "succeeded", 65, None, None),
        ("weir_ingest", "2013-05", "ingest", "running", 0, "writing nyc/flights: 14 of 31 tasks",
         None),
    ]  # fmt: skip

    def record(connection: Connection) -> None:
        for number, (dag, run, job, state, seconds, progress, error) in enumerate(runs):
            connection.execute(
                text(
                    """INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job,
                        arguments, state, started_at, updated_at, progress, error)
                    SELECT :dag, :run, :job, -1, 1, :job, '{}', :state, s.at,
                        CASE :state WHEN 'running' THEN clock_timestamp()
                            ELSE s.at + :seconds * interval '1 second' END, :progress, :error
                    FROM (SELECT clock_timestamp() + (:number - 60) * interval '1 minute') s (at)"""
                ),
                {"dag": dag, "run": run, "job": job, "state": state, "seconds": seconds,
                 "progress": progress, "error": error, "number": number},
            )  # fmt: skip

    database.transaction(record)


def _report_positions(database: Database) -> None:
    """Create a stream that scales by load, to which aeroplanes have reported where they are for
    three hours."""
    create_stream(
        database, POSITIONS, routing_key="tailnum", segments=3, scaling="event_rate",
        target_rate=10, scale_factor=4, min_segments=2, request_id="weir_create_stream/2/create",
    )  # fmt: skip

    def report(connection: Connection) -> None:
        given = {"scope": POSITIONS.scope, "name": POSITIONS.name}
        connection.execute(
            text(
                """INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset,
                                           events, start_byte, bytes, clock, transaction_number)
                SELECT s.stream_id, s.stream_name, r.segment_id, k, r.rate * 600, k, 1,
                       s.last_clock - (18 - k) * CAST(600000000 AS bigint), k
                FROM stream s, (VALUES (0, 25), (1, 2), (2, 1)) r (segment_id, rate),
                     generate_series(1, 18) k
                WHERE s.scope = :scope AND s.name = :name"""
            ),
            given,
        )
        connection.execute(
            text(
                """UPDATE epoch e SET created_at = e.created_at - CAST(10800000000 AS bigint)
                FROM stream s WHERE s.stream_id = e.stream_id AND s.scope = :scope
                  AND s.name = :name"""
            ),
            given,
        )

    database.transaction(report)


def _append(database: Database, month: str, written: Mapping[str, int]) -> None:
    _commit(database, _begin(database, month), written)


def _begin(database: Database, month: str) -> Attempt:
    begun = begin(
        database, FLIGHTS, writer_id="weir_ingest", batch_id=month, fingerprint=month, lease=LEASE,
        source=f"weir_ingest/{month}/append", inputs=[InputFile(f"flights/{month}.csv", 2_500_000)],
    )  # fmt: skip
    if not isinstance(begun, Attempt):
        raise InvariantViolation("story_broken", f"{month} is in the story twice")
    return begun


def _commit(database: Database, attempt: Attempt, written: Mapping[str, int]) -> None:
    """Commit an attempt as if Spark had written one file per segment, with 20 bytes per event."""
    files = []
    rank = 0
    for segment, events in written.items():
        path = f"{attempt.folder}_weir_segment={parse_segment_name(segment)}/_weir_task=0/0.parquet"
        files.append(
            StagedFile(
                parse_segment_name(segment), path, events, events * 20, rank, rank + events - 1
            )
        )
        rank += events
    commit(database, Staged(attempt, tuple(files), FIELDS))
