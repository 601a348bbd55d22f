-- Commit appends.

-- fragment: append
SELECT * FROM commit_append(:stream_id, :number, :attempt, :version, CAST(:segments AS bigint[]),
    CAST(:events AS bigint[]), CAST(:bytes AS bigint[]), CAST(:first AS bigint[]),
    CAST(:last AS bigint[]), CAST(:paths AS text[]), CAST(:fenced AS text[]),
    CAST(:rejected_files AS text[]), :rejected, CAST(:min_times AS bigint[]),
    CAST(:max_times AS bigint[]), :untimed, CAST(:event_time AS text), CAST(:late AS bigint),
    CAST(:complete_until AS bigint), CAST(:stated AS bigint), CAST(:hashes AS bigint[]),
    CAST(:end_hashes AS bigint[]), CAST(:file_hashes AS bigint[]), :erased_keys, :outside,
    CAST(:ahead AS bigint), CAST(:behind AS bigint),

-- name: commit_alone -> one CommitAppend
-- Lock a stream and commit an append. What an outcome does not have is null.
-- null: state, attempt, epoch, clock, events, rejected, bytes, files, held, not_before, not_after
-- null: min_event_time, max_event_time, untimed, late, complete_until, returned_writer
-- null: ahead, behind, :event_time, :late, :complete_until, :stated, :ahead, :behind, :untimed
-- type: :min_times = Sequence[int | None]
-- type: :max_times = Sequence[int | None]
-- type: :hashes = Sequence[int | None]
-- type: :end_hashes = Sequence[int | None]
-- type: :file_hashes = Sequence[int | None]
-- type: held = dict[str, str]
{append} lock_for_commit(:stream_id))

-- name: commit_locked -> one CommitAppend
-- Commit an append to a locked stream, as `commit_alone`.
-- null: state, attempt, epoch, clock, events, rejected, bytes, files, held, not_before, not_after
-- null: min_event_time, max_event_time, untimed, late, complete_until, returned_writer
-- null: ahead, behind, :event_time, :late, :complete_until, :stated, :ahead, :behind, :untimed
-- type: :min_times = Sequence[int | None]
-- type: :max_times = Sequence[int | None]
-- type: :hashes = Sequence[int | None]
-- type: :end_hashes = Sequence[int | None]
-- type: :file_hashes = Sequence[int | None]
-- type: held = dict[str, str]
{append} true)

-- name: references -> many Reference
-- Return which epochs some epochs copy: themselves, if they are no copies.
SELECT epoch, reference_epoch FROM epoch WHERE stream_id = :stream_id AND epoch = ANY(:epochs)
