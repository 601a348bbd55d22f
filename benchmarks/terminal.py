"""What people in a terminal wait for: the first hour, the end of a stream, lineage."""

import itertools
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.figure import Figure
from benchmarks.jvm import as_a_job, options_in
from benchmarks.setting import Setting
from tests.terminal.first_hour import prepare, type_all
from weir.arrow.tail import tail_of
from weir.controller.commit import commit
from weir.controller.streams import create_stream
from weir.controller.transactions import begin
from weir.history.lineage import lineage_of
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.local.installation import Installation
from weir.model.names import StreamName, stream_name
from weir.model.schema import new_field
from weir.operations.jobs import ACTIONS

ROWS = 10  # in each file
DEPTH = 10


def first_hour(setting: Setting) -> Figure:
    """Return the figure of README.md's section 'In a terminal', beside the spark-submits of the
    jobs that it runs."""
    folders = (setting.folder / f"hour-{n}" for n in itertools.count())

    def ours() -> None:
        home = next(folders)
        prepare(home)
        try:
            type_all(home)
        finally:
            Installation(home / ".weir").remove()

    other = Installation(next(folders) / ".weir")
    prepare(other.state.parent)
    setting.at_end.callback(other.remove)
    other.start_postgres()
    other.make_data_folders()
    (other.state / "input" / "orders.csv").write_bytes(
        (other.state.parent / "orders.csv").read_bytes()
    )
    names = (f"n{n}" for n in itertools.count())

    def reference() -> None:
        name = next(names)
        stream, outputs = f"shop/{name}", [f"parquet:{name}"]
        for job, arguments in (
            ("create_stream", {"stream": stream, "routing_key": "customer"}),
            ("ingest", {"stream": stream, "files": ["orders.csv"]}),
            ("create_reader_group", {"reader_group": name, "streams": [stream]}),
            ("process", {"reader_group": name, "function": "mine:totals", "outputs": outputs}),
        ):
            home = str(other.state.parent)
            environ = as_a_job(other.state)
            environ |= {
                "WEIR_FUNCTION_PACKAGES": "mine", "WEIR_FUNCTION_PATH": home,
                "PYTHONPATH": f"{home}{os.pathsep}{environ['PYTHONPATH']}",
            }  # fmt: skip
            environ.pop("WEIR_CONFIG", None)
            words = [
                "--master", "local[2]", ACTIONS[job].file, "--arguments", json.dumps(arguments),
            ]  # fmt: skip
            submit = [str(Path(sys.executable).with_name("spark-submit")), *words]
            subprocess.run(submit, env=environ, cwd=home, check=True, capture_output=True)

    return Figure(
        "people/first_hour",
        "the commands of README.md's section 'In a terminal' after the installation (start, "
        "ingest, tail, process, lag), beside the bare spark-submits of the four jobs they run",
        ours,
        reference,
        limit=1.5,
        runs=3,
        small_runs=1,
        warm_up=0,
        notes={"jvm": options_in(as_a_job(other.state))},
    )


def tail(setting: Setting) -> Figure:
    """Return the figure of reading the last events of a stream of many files, beside one of few."""
    many, few = _stream_of(setting, 100, 100), _stream_of(setting, 1, 10)

    def read(name: StreamName) -> None:
        for _ in range(20):
            found = tail_of(setting.database, setting.settings, name, 10)
            assert found.num_rows == 10

    return Figure(
        "people/tail",
        "20 times the last 10 events of a stream of 10,000 files in 100 commits, beside one of 10 "
        "files in one commit",
        lambda: read(many),
        lambda: read(few),
        limit=2,
    )


def _stream_of(setting: Setting, commits: int, files: int) -> StreamName:
    """Return a stream of so many commits with so many equal files each."""
    name = stream_name(f"bench/tail-{commits * files}")
    create_stream(
        setting.database, name, routing_key="key", segments=1, request_id=f"tail {commits * files}"
    )
    contents = []
    for task in range(files):
        ranks = range(task * ROWS, (task + 1) * ROWS)
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"key": [f"k{n}" for n in ranks], "_weir_seq": ranks}), sink)
        contents.append(sink.getvalue().to_pybytes())
    fields = [new_field("key", "string")]
    for number in range(commits):
        attempt = begin(
            setting.database, name, writer_id="bench", batch_id=str(number), fingerprint="",
            lease=600.0, source="bench",
        )  # fmt: skip
        assert isinstance(attempt, Attempt)
        written = []
        for task, content in enumerate(contents):
            folder = f"{attempt.folder}_weir_segment=0/_weir_task={task}"
            path = Path(setting.settings.warehouse) / folder
            path.mkdir(parents=True)
            (path / "part.parquet").write_bytes(content)
            place = f"{folder}/part.parquet"
            first = task * ROWS
            written.append(StagedFile(0, place, ROWS, len(content), first, first + ROWS - 1))
        commit(setting.database, Staged(attempt, tuple(written), fields))
    return name


def lineage(setting: Setting) -> Figure:
    """Return the figure of a question at depth 10 among very many runs, beside among few."""
    databases = {
        runs: setting.filled(f"lineage_{runs}", _RUNS, events=runs // DEPTH, depth=DEPTH)
        for runs in (1_000, 100_000)
    }

    def ask(runs: int) -> None:
        middle = runs // DEPTH // 2
        for direction, stream in (("up", f"bench/s{DEPTH}"), ("down", "bench/s0")):
            asked = partial(
                lineage_of, of=stream, direction=direction, segment="0.0", from_offset=middle,
                to_offset=middle + 1,
            )  # fmt: skip
            for _ in range(20):
                steps = databases[runs].transaction(asked)
                assert max(one.step for one in steps) >= DEPTH

    return Figure(
        "people/lineage",
        f"20 times what an event was made of and what was made of one, {DEPTH} runs deep, among "
        "100,000 runs beside among 1,000",
        lambda: ask(100_000),
        lambda: ask(1_000),
        limit=1.5,
    )


# A row of streams; for each event of each, a batch of its own makes an event of the next stream.
_RUNS = """
INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows, retention,
    next_segment_number, last_clock, head)
SELECT 'bench', 's' || d, 'key', 'fail', 'fail', 'consumed', 1, 1, jsonb_build_object('0.0', 0)
FROM generate_series(0, :depth) d ORDER BY d;
INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause, request_id)
SELECT stream_id, stream_name, 0, 0, 1, 'create', '' FROM stream;
INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
SELECT stream_id, stream_name, 0, 0, 1 FROM stream;
INSERT INTO segment_tail (stream_id, segment_id, tail_offset, tail_bytes)
SELECT stream_id, 0, :events, :events FROM stream;
INSERT INTO reader_group (name, subscriber, on_gap)
SELECT 'g' || d, false, 'fail' FROM generate_series(1, :depth) d ORDER BY d;
INSERT INTO transaction (stream_id, transaction_number, stream_name, writer_id, batch_id,
    fingerprint, allow_repeated_files, source, state, epoch, opened_at, lease_until, ended_at,
    clock, events, bytes, files, rejected)
SELECT s.stream_id, k + 1, s.stream_name,
       CASE WHEN g.group_id IS NULL THEN 'w' ELSE 'group ' || g.name END,
       CASE WHEN g.group_id IS NULL THEN k::text ELSE g.group_id || '.' || k + 1 END, '', false,
       'dag/' || k || '/task', 'committed', 0, now(), now(), now(), k + 2, 1, 1, 1, 0
FROM stream s LEFT JOIN reader_group g ON 's' || substr(g.name, 2) = s.name, generate_series(0,
    :events - 1) k;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT s.stream_id, s.stream_name, 0, k, 1, k, 1, k + 2, k + 1
FROM stream s, generate_series(0, :events - 1) k;
INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state, bounds,
    events, bytes,
    opened_at, committed_at, ended_at, outputs, function, function_version)
SELECT g.group_id, g.name, k + 1, 'dag/' || k || '/' || g.name, 1, 'committed',
       jsonb_build_array(jsonb_build_object('stream', o.stream_id, 'segment', 0, 'from', k,
           'to', k + 1)), 1, 1,
    now(), now(), now(),
       jsonb_build_array(jsonb_build_object('kind', 'stream', 'output', s.stream_name,
           'stream_id', s.stream_id, 'transaction_number', k + 1)), 'shop:f', 'v'
FROM reader_group g JOIN stream s ON 's' || substr(g.name, 2) = s.name
JOIN stream o ON o.name = 's' || substr(g.name, 2)::integer - 1, generate_series(0, :events - 1) k;
INSERT INTO batch_input (stream_id, segment_id, from_offset, to_offset, size_class, group_id,
    batch_id)
SELECT i.*, b.group_id, b.batch_id FROM reader_batch b CROSS JOIN LATERAL inputs_of(b.bounds) i;
"""


FIGURES = {
    "people/first_hour": first_hour,
    "people/tail": tail,
    "people/lineage": lineage,
}
