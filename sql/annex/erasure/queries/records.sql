-- What the database records of an erasure of a stream.
-- import: from weir.model.compaction import Small

-- name: files -> many Small
-- Return the files of some segments.
SELECT f.segment_id, f.start_offset, f.events, f.bytes, f.schema_version,
    f.transaction_number, t.clock, f.path, f.erased
FROM data_file f LEFT JOIN transaction t USING (stream_id, transaction_number)
WHERE f.stream_id = :stream_id AND f.segment_id = ANY (CAST(:segments AS bigint[]))
ORDER BY f.segment_id, f.start_offset

-- name: done -> maybe Erased
-- Return what an erasure did that has ended.
-- row: What an erasure did. `number`: None if there was nothing to erase. The digests are those of
-- row: the commits that had the events, None if one was not recorded (semantics 18.1).
-- null: number, digest_before, digest_after
-- type: segments = dict[str, int]
SELECT erasure_number AS number, stream_id, events, files, segments, digest_before, digest_after
FROM erasure WHERE stream_id = :stream_id AND compaction_number = :number

-- name: note_keys -> none
-- Note hashes of routing keys that are erased.
SELECT note_erased_keys(:stream_id, CAST(:keys AS text[]))

-- name: let_garbage_go -> none
-- Let all that is garbage of a stream go without a grace period: it may have the events, too.
UPDATE garbage SET reason = 'erased' WHERE stream_id = :stream_id AND reason <> 'swept'

-- name: record -> one
-- Record an erasure that was asked for. Returns its number.
-- null: :before, :after
SELECT record_requested_erasure(:stream_id, :number, :by, :reason, CAST(:asked AS jsonb), :events,
    :files, :before, :after, CAST(:segments AS jsonb))

-- name: record_again -> none
-- Record an erasure of which nobody knows who asked for it.
SELECT record_erasure(:stream_id, :number, 'recovery', 'erased after the backup', :events, :files,
    CAST(:segments AS jsonb))

-- fragment: given
unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[])) AS n (segment_id, clock)

-- fragment: new
unnest(CAST(:segments AS bigint[]), CAST(:clocks AS bigint[]), CAST(:digests AS bigint[]))
        AS n (segment_id, clock, digest)

-- name: digests -> many
-- Return the digests of some commits, each by its segment and clock.
-- null: digest
SELECT n.segment_id, n.clock, i.digest FROM {given}
JOIN time_index i ON i.stream_id = :stream_id AND i.segment_id = n.segment_id AND i.clock = n.clock
UNION ALL
SELECT n.segment_id, n.clock, p.digests[array_position(p.clocks, n.clock)] FROM {given}
JOIN packed_commits p ON p.stream_id = :stream_id AND p.segment_id = n.segment_id
    AND n.clock BETWEEN p.first_clock AND p.last_clock

-- name: lower -> none
-- Put digests in the place of recorded ones.
-- type: :digests = Sequence[int | None]
UPDATE time_index i SET digest = n.digest FROM {new}
WHERE i.stream_id = :stream_id AND i.segment_id = n.segment_id AND i.clock = n.clock
    AND i.digest IS NOT NULL

-- name: lower_packed -> none
-- Put digests in the place of recorded ones, of commits that are packed.
-- type: :digests = Sequence[int | None]
UPDATE packed_commits p SET digests = (
    SELECT array_agg(coalesce(n.digest, d.digest) ORDER BY d.i)
    FROM unnest(p.digests) WITH ORDINALITY AS d (digest, i)
    LEFT JOIN {new} ON n.segment_id = p.segment_id AND n.clock = p.clocks[d.i])
WHERE p.stream_id = :stream_id AND p.digests IS NOT NULL AND EXISTS (
    SELECT FROM {given} WHERE n.segment_id = p.segment_id
        AND n.clock BETWEEN p.first_clock AND p.last_clock)
