"""What an audit of the ledger costs: of everything, and of what came since."""

import time

from sqlalchemy import text

from benchmarks.figure import Figure
from benchmarks.setting import Setting, in_bulk
from weir.annex.audit.run import audit
from weir.database.connection import Database

STREAMS, SEGMENTS, GROUPS, MORE = 100, 4, 20, 10  # MORE: new commits of each stream
_TABLES = """transaction time_index packed_commits data_file reader_batch batch_input
    delivered_range truncated_range placement reader_group_segment segment hole""".split()


def _ledger(setting: Setting, commits: int) -> Database:
    """Return a database of so many commits, of a file each, which all groups have read."""
    deep = commits // STREAMS // SEGMENTS
    return setting.filled(
        f"ledger_{commits}", _LEDGER, streams=STREAMS, segments=SEGMENTS, groups=GROUPS,
        each=commits // STREAMS, step=max(1, deep // 10), parts=min(10, deep),
    )  # fmt: skip


def ledger(setting: Setting) -> Figure:
    """Return the figure of auditing all, beside counting the same rows."""
    commits = 1_000_000 if setting.full else 200_000
    database = _ledger(setting, commits)

    def ours() -> None:
        done = audit(database, everything=True)
        assert not done.counter_examples, done.counter_examples[:3]

    def reference() -> None:
        for table in _TABLES:
            database.snapshot(lambda c, t=table: c.execute(text(f"SELECT count(*) FROM {t}")).all())  # type: ignore[misc]  # noqa: S608

    return Figure(
        "audit/ledger",
        f"an audit of everything: {commits:,} commits of a file each in {STREAMS} streams, and "
        f"{GROUPS} groups that have read them all, beside counting the rows of the same tables",
        ours, reference, limit=3,
    )  # fmt: skip


def incremental(setting: Setting) -> Figure:
    """Return the figure of auditing new commits after many, beside after few."""
    commits = 1_000_000 if setting.full else 200_000
    many, few = _ledger(setting, commits), _ledger(setting, STREAMS * MORE)
    for database in (many, few):
        audit(database)

    def one(database: Database) -> float:
        in_bulk(database, _MORE, more=MORE, segments=SEGMENTS)
        begun = time.perf_counter()
        done = audit(database)
        took = time.perf_counter() - begun
        assert not done.counter_examples, done.counter_examples[:3]
        assert done.since is not None
        return took

    return Figure(
        "audit/incremental",
        f"an audit of {STREAMS * MORE:,} new commits after {commits:,} that are proven, beside the "
        f"same after {STREAMS * MORE:,}",
        lambda: one(many), lambda: one(few), limit=1.2,
    )  # fmt: skip


FIGURES = {"audit/ledger": ledger, "audit/incremental": incremental}

# Commit n of a stream is event n / segments of segment n % segments. A group has read a stream in
# ten batches at most.
_LEDGER = """
INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows, retention,
    next_segment_number, next_transaction_number, last_clock, head)
SELECT 'bench', 's' || i, 'key', 'fail', 'fail', 'keep', :segments, :each + 1, 1000 + :each,
       (SELECT jsonb_object_agg(k || '.0', 0) FROM generate_series(0, :segments - 1) k)
FROM generate_series(1, :streams) i;
INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause, request_id)
SELECT stream_id, stream_name, 0, 0, 1, 'create', '' FROM stream;
INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high)
SELECT stream_id, stream_name, k, k / CAST(:segments AS double precision),
       (k + 1) / CAST(:segments AS double precision)
FROM stream, generate_series(0, :segments - 1) k;
INSERT INTO segment_tail (stream_id, segment_id, tail_offset, tail_bytes)
SELECT stream_id, segment_id, 0, 0 FROM segment;
INSERT INTO reader_group (name, subscriber, on_gap)
SELECT 'g' || i, true, 'fail' FROM generate_series(1, :groups) i;
INSERT INTO reader_group_stream (group_id, stream_id, start_cut, released_cut)
SELECT group_id, stream_id, head, head FROM reader_group, stream;
INSERT INTO placement (group_id, group_name, stream_id, number, cause, cut)
SELECT group_id, g.name, stream_id, 1, 'entered', head FROM reader_group g, stream;
INSERT INTO reader_group_segment (group_id, stream_id, segment_id, state, next_offset)
SELECT group_id, stream_id, segment_id, 'unassigned', :step * :parts FROM reader_group, segment;
INSERT INTO delivered_range (group_id, stream_id, segment_id, placement, from_offset, to_offset,
    events, first_batch, last_batch, first_at, last_at)
SELECT group_id, stream_id, segment_id, 1, 0, :step * :parts, :step * :parts,
       (stream_id - 1) * 10 + 1, (stream_id - 1) * 10 + :parts, now(), now()
FROM reader_group, segment;
INSERT INTO reader_batch (group_id, group_name, batch_id, reader_id, token, state, bounds, events,
    bytes, opened_at, committed_at, ended_at, outputs)
SELECT group_id, g.name, (stream_id - 1) * 10 + 1 + b, 'dag/run/task', 1, 'committed', (
        SELECT jsonb_agg(jsonb_build_object('stream', stream_id, 'segment', k,
            'from', b * :step, 'to', (b + 1) * :step))
        FROM generate_series(0, :segments - 1) k),
    :step * :segments, 10, now() - interval '1 day', now() - interval '1 day',
    now() - interval '1 day', '[]'
FROM reader_group g, stream, generate_series(0, :parts - 1) b;
INSERT INTO batch_input (stream_id, segment_id, from_offset, to_offset, size_class, group_id,
    batch_id)
SELECT i.*, b.group_id, b.batch_id FROM reader_batch b CROSS JOIN LATERAL inputs_of(b.bounds) i;
INSERT INTO transaction (stream_id, transaction_number, stream_name, writer_id, batch_id,
    fingerprint, allow_repeated_files, source, state, epoch, opened_at, lease_until, ended_at,
    clock, events, bytes, files)
SELECT stream_id, n, stream_name, 'w', n, '', false, '', 'committed', 0, now(), now(), now(),
       1000 + n, 1, 10, 1
FROM stream, generate_series(1, :each) n;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT stream_id, stream_name, (n - 1) % :segments, (n - 1) / :segments, 1,
       (n - 1) / :segments * 10, 10, 1000 + n, n
FROM stream, generate_series(1, :each) n;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path)
SELECT stream_id, stream_name, (n - 1) % :segments, (n - 1) / :segments, 1, 10, n, 0, 0, 0,
       stream_id || '/' || n
FROM stream, generate_series(1, :each) n;
UPDATE segment_tail t SET tail_offset = n.past, tail_bytes = n.past * 10
FROM (SELECT stream_id, segment_id, max(start_offset) + 1 AS past FROM time_index GROUP BY 1, 2) n
WHERE n.stream_id = t.stream_id AND n.segment_id = t.segment_id
"""
_MORE = """
CREATE TEMP TABLE made ON COMMIT DROP AS
SELECT s.stream_id, s.stream_name, n, s.next_transaction_number + n - 1 AS number,
       s.last_clock + n AS clock, (n - 1) % :segments AS segment_id,
       t.tail_offset + (n - 1) / :segments AS start_offset
FROM stream s CROSS JOIN generate_series(1, :more) n
JOIN segment_tail t ON t.stream_id = s.stream_id AND t.segment_id = (n - 1) % :segments;
INSERT INTO transaction (stream_id, transaction_number, stream_name, writer_id, batch_id,
    fingerprint, allow_repeated_files, source, state, epoch, opened_at, lease_until, ended_at,
    clock, events, bytes, files)
SELECT stream_id, number, stream_name, 'w', number, '', false, '', 'committed', 0, now(), now(),
       now(), clock, 1, 10, 1 FROM made;
INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
    clock, transaction_number)
SELECT stream_id, stream_name, segment_id, start_offset, 1, start_offset * 10, 10, clock, number
FROM made;
INSERT INTO data_file (stream_id, stream_name, segment_id, start_offset, events, bytes,
    transaction_number, first_seq, last_seq, schema_version, path)
SELECT stream_id, stream_name, segment_id, start_offset, 1, 10, number, 0, 0, 0,
       stream_id || '/' || number FROM made;
UPDATE segment_tail t SET tail_offset = n.past, tail_bytes = n.past * 10
FROM (SELECT stream_id, segment_id, max(start_offset) + 1 AS past FROM made GROUP BY 1, 2) n
WHERE n.stream_id = t.stream_id AND n.segment_id = t.segment_id;
UPDATE stream s SET last_clock = s.last_clock + :more,
    next_transaction_number = s.next_transaction_number + :more
"""
