"""Complete checkpoints. Made by `make queries` from sql/queries/reader_groups/checkpoints/records.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

RECORD = text(
    """WITH here AS MATERIALIZED (
    SELECT g.group_id, g.name, g.subscriber AND g.release = 'automatic' AS releases,
           coalesce(p.cuts, '{}') AS cuts, coalesce(p.behind, false) AS behind
    FROM reader_group g
    CROSS JOIN LATERAL (
        SELECT jsonb_object_agg(gs.stream_id::text, c.cut) AS cuts,
               bool_or(gs.released_cut <> c.cut) AS behind
        FROM reader_group_stream gs JOIN stream s USING (stream_id)
        CROSS JOIN LATERAL (SELECT group_cut(gs.group_id, gs.stream_id) AS cut OFFSET 0) c
        WHERE gs.group_id = g.group_id AND s.state <> 'deleted') p
    WHERE g.group_id = ANY(:ids)
), moved AS MATERIALIZED (
    SELECT h.* FROM here h
    WHERE CAST(:name AS text) IS NOT NULL OR h.releases AND h.behind
       OR h.cuts IS DISTINCT FROM coalesce(
           (SELECT l.cuts FROM last_checkpoint(h.group_id) l),
           (SELECT jsonb_object_agg(gs.stream_id::text, gs.start_cut)
            FROM reader_group_stream gs WHERE gs.group_id = h.group_id))
), made AS (
    INSERT INTO checkpoint (group_id, name, kind, created_at, cuts, released, state,
                            waits_for, ended_at)
    SELECT m.group_id,
           coalesce(CAST(:name AS text), 'automatic-' || time_clock(t.now)),
           CASE WHEN CAST(:name AS text) IS NULL THEN 'automatic' ELSE 'manual' END,
           t.now, m.cuts, m.releases, 'complete', '{}', t.now
    FROM moved m CROSS JOIN LATERAL (SELECT clock_timestamp() AS now OFFSET 0) t
    ON CONFLICT (group_id, name) DO NOTHING RETURNING group_id, name
), result AS MATERIALIZED (
    SELECT h.group_id, h.name AS reader_group, c.name AS checkpoint, h.releases AS released,
           m.group_id IS NOT NULL AND c.group_id IS NULL AS refused
    FROM here h LEFT JOIN moved m USING (group_id) LEFT JOIN made c USING (group_id)
), looked_at AS (
    UPDATE reader_group g SET checkpointed_at = clock_timestamp()
    FROM result r WHERE CAST(:name AS text) IS NULL AND g.group_id = r.group_id
      AND NOT r.refused
)
SELECT * FROM result ORDER BY group_id"""
)


class Recorded(NamedTuple):
    """A row of `record`."""

    group_id: int
    reader_group: str
    checkpoint: str | None
    released: bool
    refused: bool


def record(connection: Connection, *, ids: Sequence[int], name: str | None) -> list[Recorded]:
    """Record the positions of groups. Without a name the checkpoint is automatic. Then it is recorded only if the positions differ from the newest checkpoint (or from the start of the group), or if the group has not released all that lies before them, as after a reset from which it has read up to its last checkpoint again."""
    result = connection.execute(RECORD, {"ids": list(ids), "name": name})
    return [Recorded._make(row) for row in result]


RELEASE = text(
    """WITH passed AS MATERIALIZED (
    SELECT c.group_id, e.stream_id::bigint AS stream_id, e.cut
    FROM unnest(CAST(:groups AS bigint[]), CAST(:names AS text[])) AS w (group_id, name)
    JOIN checkpoint c USING (group_id, name)
    CROSS JOIN LATERAL jsonb_each(c.cuts) e (stream_id, cut)
), released AS (
    UPDATE reader_group_stream gs
    SET released_at = clock_timestamp(), released_cut = j.cut
    FROM passed p JOIN reader_group_stream b USING (group_id, stream_id)
    CROSS JOIN LATERAL (  -- OFFSET 0: joined once
        SELECT join_cuts(b.stream_id, b.released_cut, p.cut) AS cut OFFSET 0) j
    WHERE gs.group_id = b.group_id AND gs.stream_id = b.stream_id AND j.cut <> b.released_cut
    RETURNING gs.stream_id
), due AS (
    INSERT INTO retention_queue (stream_id, due_at)
    SELECT stream_id, clock_timestamp() FROM stream
    WHERE state = 'active' AND stream_id IN (SELECT stream_id FROM released)
)
UPDATE checkpoint c SET released = true
FROM unnest(CAST(:groups AS bigint[]), CAST(:names AS text[])) AS w (group_id, name)
WHERE c.group_id = w.group_id AND c.name = w.name AND NOT c.released"""
)


def release(connection: Connection, *, groups: Sequence[int], names: Sequence[str]) -> None:
    """Release what checkpoints have passed. Of one of several streams each stream is released by itself."""
    result = connection.execute(RELEASE, {"groups": list(groups), "names": list(names)})
    result.close()
