"""A stream that was scaled once a second, for as long as is wanted, made by bulk insert.

The key space has `SLOTS` equal slots; every second one begins as two halves. Epoch e replaces what
is in slot (e - 1) mod SLOTS: one segment by two halves, or two halves by one segment. So there are
1.5 segments per epoch, always about 1.5 * SLOTS active ones, and every number, range and sum
follows from the number of the epoch. To each segment one commit appended the same; only those of
the active ones are in the time index, as in a year it would be as large as all the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg2
from sqlalchemy import Connection

from weir.controller.queries import Cut
from weir.model.names import StreamName
from weir.model.segment import Segment
from weir.queries.controller import epochs

SLOTS = 100
EVENTS = 1000
BYTES = 100_000


@dataclass(frozen=True)
class History:
    """A stream with epochs 0 to `epochs`, one second apart."""

    name: StreamName
    stream_id: int
    epochs: int
    last_clock: int  # of the last epoch

    def time(self, epoch: int) -> datetime:
        """Return a time at which an epoch was current."""
        clock = timedelta(microseconds=self.last_clock - (self.epochs - epoch) * 1_000_000)
        return datetime(1970, 1, 1, tzinfo=UTC) + clock + timedelta(milliseconds=700)

    def segments(self, connection: Connection, epoch: int) -> list[Segment]:
        """Return the segments of an epoch."""
        return epochs.segments_at(connection, stream_id=self.stream_id, epoch=epoch)

    def cut(self, connection: Connection, epoch: int) -> Cut:
        """Return the cut in the middle of all segments of an epoch."""
        return middle(self.segments(connection, epoch))


def middle(segments: list[Segment]) -> Cut:
    """Return the cut in the middle of segments that tile the key space."""
    return {segment.name: EVENTS // 2 for segment in segments}


def build(dsn: str, wanted: Mapping[StreamName, int]) -> list[History]:
    """Make streams with so many epochs each, and return them. `dsn` is the superuser's."""
    connection = psycopg2.connect(dsn)
    connection.autocommit = True
    with connection.cursor() as cursor:
        # Without checks of foreign keys, and with indexes made at the end, this takes minutes, not
        # hours.
        cursor.execute(
            """SET session_replication_role = replica; SET search_path = weir_internal, weir;
            SET maintenance_work_mem = '1GB'"""
        )
        cursor.execute(
            """SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'weir_internal'
            AND tablename IN ('epoch', 'segment')
            AND NOT EXISTS (SELECT FROM pg_constraint c WHERE c.conname = indexname)"""
        )
        indexes = cursor.fetchall()
        for index, _ in indexes:
            cursor.execute(f"DROP INDEX {index}")
        made = []
        for name, epochs in wanted.items():
            cursor.execute(
                _BUILD,
                {"scope": name.scope, "name": name.name, "n": epochs, "slots": SLOTS,
                 "events": EVENTS, "bytes": BYTES},
            )  # fmt: skip
            cursor.execute(
                "SELECT stream_id, last_clock - 500000 FROM stream WHERE (scope, name) = (%s, %s)",
                (name.scope, name.name),
            )
            stream_id, last_clock = cursor.fetchone()
            made.append(History(name, stream_id, epochs, last_clock))
        for _, definition in indexes:
            cursor.execute(definition)
        tables = "stream, epoch, segment, segment_tail, time_index"
        cursor.execute(f"VACUUM (FREEZE) {tables}")
        # Vacuum again, as the first time leaves some pages that index-only scans still look into.
        cursor.execute(f"VACUUM (ANALYZE) {tables}")
    connection.close()
    return made


# The view `touch` has one row per epoch and slot that the epoch touches: what was created there,
# and when it was sealed.
_BUILD = """
CREATE TEMP VIEW touch AS
SELECT 0 AS epoch, slot, slot + slot / 2 AS number, slot %% 2 = 1 AS halves, slot + 1 AS sealed
FROM generate_series(0, %(slots)s - 1) slot
UNION ALL
SELECT e, slot, 3 * %(slots)s / 2 * (round + 1) + slot + (slot + 1 - round %% 2) / 2,
       (round + slot) %% 2 = 0, e + %(slots)s
FROM (SELECT e, (e - 1) / %(slots)s AS round, (e - 1) %% %(slots)s AS slot
      FROM generate_series(1, %(n)s) e) t;

INSERT INTO stream (scope, name, routing_key, on_missing_key, on_bad_rows, retention,
                    current_epoch, next_segment_number, schema_version, last_clock, head)
VALUES (%(scope)s, %(name)s, 'key', 'fail', 'fail', 'keep', %(n)s, 1, 1,
        time_clock(clock_timestamp()) - 60000000, '{}');

CREATE TEMP VIEW made AS
SELECT s.stream_id, s.last_clock - 500000 AS clock FROM stream s
WHERE s.scope = %(scope)s AND s.name = %(name)s;

INSERT INTO stream_schema (stream_id, version, fields)
SELECT stream_id, 1, '[{"name": "key", "type": "string", "nullable": true, "metadata": {}}]'
FROM made;

INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, splits, merges,
                   sealed_events, sealed_bytes, cause, request_id)
SELECT stream_id, %(scope)s || '/' || %(name)s, e, e, clock - (%(n)s - e) * 1000000::bigint,
       splits, e - splits,
       sealed::bigint * %(events)s, sealed::bigint * %(bytes)s,
       CASE WHEN e = 0 THEN 'create' ELSE 'scale' END, 'built'
FROM made, (
    SELECT 0 AS e, 0 AS splits, 0 AS sealed
    UNION ALL
    SELECT e, %(slots)s / 2 * round + (slot + 2 - round %% 2) / 2,
           3 * %(slots)s / 2 * round + slot + 1 + (slot + 1 + round %% 2) / 2
    FROM (SELECT e, (e - 1) / %(slots)s AS round, (e - 1) %% %(slots)s AS slot
          FROM generate_series(1, %(n)s) e) t) counted;

INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high, sealed_epoch,
                     sealed_clock, events, bytes)
SELECT stream_id, %(scope)s || '/' || %(name)s, epoch::bigint << 32 | (number + part),
       (2 * slot + part)::double precision / (2 * %(slots)s),
       (2 * slot + CASE WHEN halves THEN part + 1 ELSE 2 END)::double precision / (2 * %(slots)s),
       CASE WHEN sealed <= %(n)s THEN sealed END,
       CASE WHEN sealed <= %(n)s THEN clock - (%(n)s - sealed) * 1000000::bigint END,
       CASE WHEN sealed <= %(n)s THEN %(events)s END, CASE WHEN sealed <= %(n)s THEN %(bytes)s END
FROM made, touch JOIN (VALUES (0), (1)) p (part) ON part = 0 OR halves;

UPDATE stream s
SET next_segment_number = (SELECT (g.segment_id & 4294967295) + 1 FROM segment g
                           WHERE g.stream_id = s.stream_id ORDER BY g.segment_id DESC LIMIT 1),
    head = (SELECT jsonb_object_agg(segment_name(g.segment_id), 0) FROM segment g
            WHERE g.stream_id = s.stream_id AND g.segment_id < 1::bigint << 32)
FROM made WHERE s.stream_id = made.stream_id;

INSERT INTO segment_tail (stream_id, segment_id, tail_offset, tail_bytes)
SELECT g.stream_id, g.segment_id, %(events)s, %(bytes)s
FROM made JOIN segment g USING (stream_id) WHERE g.sealed_epoch IS NULL;

INSERT INTO time_index (stream_id, stream_name, segment_id, start_offset, events, start_byte, bytes,
                        clock, transaction_number)
SELECT g.stream_id, g.stream_name, g.segment_id, 0, %(events)s, 0, %(bytes)s,
       clock - (%(n)s - g.creation_epoch) * 1000000::bigint + 500000, g.creation_epoch + 1
FROM made JOIN segment g USING (stream_id) WHERE g.sealed_epoch IS NULL;

DROP VIEW touch, made;
"""
