-- Lineage: which run made what, of what.

-- name: steps -> many Step
-- Return what a stream, a part of it or a run was made of, or what was made of it.
-- row: One thing that a run read or wrote in one commit.
-- row:
-- row: `step`: how many commits away; 0: the run that was asked about. `run`: DAG/run/task, or the name of a program.
-- row: `side`: read or wrote; None for an append of which no input is known. `kind`: stream, file, store, parquet or
-- row: table. `version`: of a store; of a stream that was written, the transaction.
-- null: reader_group, batch_id, function, function_version, side, kind, name, segment, from_offset, to_offset, version
-- null: :depth, :segment, :first, :past
SELECT step, run, reader_group, batch_id, function, function_version, committed_at, side, kind, name,
    name_segment AS segment, name_from AS from_offset, name_to AS to_offset, version
FROM lineage(CAST(:of AS text), CAST(:direction AS text), CAST(:depth AS integer), CAST(:segment AS text),
    CAST(:first AS bigint), CAST(:past AS bigint))
