# ruff: noqa: E501 - each is one statement
"""Faults to plant: by the kind that the audit calls them, what is done to the ledger. `:s` is the
stream, `:o` the stream that the group writes to, `:g` the group, `:w` the slow one and
`:t` that of the store."""

_LAST_FILE = """(stream_id, segment_id, start_offset) = (
    SELECT stream_id, segment_id, start_offset FROM data_file WHERE stream_id = :s
    ORDER BY segment_id DESC, start_offset DESC LIMIT 1)"""
_FIRST_OF_TWO = """(stream_id, segment_id, start_offset) = (
    SELECT stream_id, segment_id, min(start_offset) FROM data_file WHERE stream_id = :o
    GROUP BY stream_id, segment_id HAVING count(*) > 2 ORDER BY segment_id LIMIT 1)"""
_SECOND = """(stream_id, segment_id, start_offset) = (
    SELECT stream_id, segment_id, start_offset FROM data_file WHERE stream_id = :o
    ORDER BY segment_id, start_offset OFFSET 1 LIMIT 1)"""
_BATCH = "group_id = :g AND batch_id = 2"
_RANGE = """(group_id, stream_id, segment_id, placement, from_offset) = (
    SELECT group_id, stream_id, segment_id, placement, from_offset FROM delivered_range
    WHERE group_id = :g AND to_offset - from_offset > 2
    ORDER BY placement DESC, segment_id DESC LIMIT 1)"""
_RECEIPT = """(stream_id, segment_id, from_offset) = (
    SELECT stream_id, segment_id, from_offset FROM truncated_range
    WHERE stream_id = :s AND to_offset - from_offset > 1 ORDER BY segment_id LIMIT 1)"""
_POSITION = """(group_id, stream_id, segment_id) = (
    SELECT group_id, stream_id, segment_id FROM reader_group_segment
    WHERE group_id = :g AND next_offset > 2 ORDER BY segment_id LIMIT 1)"""

# What, the kind, and how.
FAULTS: list[tuple[str, str, str]] = [
    # Streams.
    ("a file deleted early", "file_missing", f"DELETE FROM data_file WHERE {_SECOND}"),
    ("the last file deleted", "file_missing", f"DELETE FROM data_file WHERE {_LAST_FILE}"),
    ("a file too short", "file_missing", f"UPDATE data_file SET events = events - 1 WHERE {_SECOND}"),
    ("files that overlap", "file_twice",
     f"UPDATE data_file SET events = events + 1 WHERE {_FIRST_OF_TWO}"),
    ("a file too long at the tail", "file_beyond_tail",
     f"UPDATE data_file SET events = events + 1 WHERE {_LAST_FILE}"),
    ("a tail too far", "commit_missing",
     """UPDATE segment_tail SET tail_offset = tail_offset + 1 WHERE (stream_id, segment_id) = (
        SELECT stream_id, segment_id FROM segment_tail WHERE stream_id = :s LIMIT 1)"""),
    ("a tail moved back", "commit_beyond_tail",
     """UPDATE segment_tail SET tail_offset = tail_offset - 1 WHERE (stream_id, segment_id) = (
        SELECT stream_id, segment_id FROM segment_tail
        WHERE stream_id = :s AND tail_offset > 0 LIMIT 1)"""),
    ("a commit forgotten", "commit_missing",
     """DELETE FROM time_index WHERE (stream_id, segment_id, start_offset) = (
        SELECT stream_id, segment_id, start_offset FROM time_index WHERE stream_id = :o
        ORDER BY start_offset OFFSET 1 LIMIT 1)"""),
    ("a commit that has another's offsets", "commit_twice",
     """UPDATE time_index SET events = events + 1 WHERE (stream_id, segment_id, start_offset) = (
        SELECT stream_id, segment_id, start_offset FROM time_index WHERE stream_id = :o
        ORDER BY start_offset OFFSET 1 LIMIT 1)"""),
    ("an append that says more than it committed", "commit_not_whole",
     """UPDATE transaction SET events = events + 1 WHERE stream_id = :o AND transaction_number = 3"""),
    ("an append that was never committed", "commit_unknown",
     """UPDATE transaction SET state = 'aborted', clock = NULL
        WHERE stream_id = :o AND transaction_number = 3"""),
    ("a commit under an earlier clock", "clock_not_later",
     """WITH anew AS (DELETE FROM audited_stream WHERE stream_id = :o)
        UPDATE time_index SET clock = clock - 1000000000 WHERE stream_id = :o
        AND transaction_number = 3"""),
    ("a head that nobody moved", "file_below_head",
     """UPDATE stream SET head = (SELECT jsonb_object_agg(segment_name(segment_id), tail_offset)
        FROM segment_tail WHERE stream_id = :s) WHERE stream_id = :s"""),
    ("keys that no segment has", "keys_without_segment",
     """UPDATE segment SET key_high = key_high - 0.01 WHERE (stream_id, segment_id) = (
        SELECT stream_id, segment_id FROM segment_tail WHERE stream_id = :s LIMIT 1)"""),
    ("a stream that only counts as deleted", "stream_kept",
     """UPDATE stream SET state = 'deleted', sealed_clock = last_clock WHERE stream_id = :s"""),
    ("an audit that counts as done", "proven_beyond",
     """INSERT INTO audited_stream SELECT stream_id, last_clock + 1 FROM stream WHERE stream_id = :s
        ON CONFLICT (stream_id) DO UPDATE SET clock = excluded.clock"""),
    # Receipts.
    ("a receipt missing", "receipt_missing", f"DELETE FROM truncated_range WHERE {_RECEIPT}"),
    ("a part of a receipt missing", "receipt_missing",
     f"UPDATE truncated_range SET to_offset = to_offset - 1 WHERE {_RECEIPT}"),
    ("a receipt too many", "receipt_of_what_is_kept",
     """INSERT INTO truncated_range SELECT s.stream_id, t.segment_id, t.tail_offset - 1,
            t.tail_offset, 1 FROM stream s JOIN segment_tail t USING (stream_id)
        WHERE s.stream_id = :o AND false OR s.stream_id = :s AND t.tail_offset > 0 LIMIT 1"""),
    ("a receipt given twice", "receipt_twice",
     """INSERT INTO truncated_range
        SELECT stream_id, segment_id, from_offset + 1, to_offset, number FROM truncated_range
        WHERE stream_id = :s AND to_offset - from_offset > 1 LIMIT 1"""),
    ("a receipt that says more than went", "receipt_sum",
     "UPDATE truncation SET events = events + 1 WHERE stream_id = :s AND number = 1"),
    ("a receipt torn out", "receipt_lost",
     """WITH gone AS (DELETE FROM truncated_range WHERE stream_id = :s AND number = 2)
        DELETE FROM truncation WHERE stream_id = :s AND number = 2"""),
    ("a receipt with a wrong total", "receipt_total",
     """UPDATE truncation SET events_until = events_until + 1 WHERE stream_id = :s AND number = 1"""),
    # Erasures.
    ("a hole not declared", "hole_not_declared",
     f"UPDATE data_file SET erased = 1 WHERE {_LAST_FILE}"),
    ("a hole of an event that is there", "hole_not_declared",
     f"""INSERT INTO hole SELECT stream_id, segment_id, 0, 1,
            int4multirange(int4range(start_offset::integer, start_offset::integer + 1))
        FROM data_file WHERE {_SECOND}"""),
    ("a hole that no erasure made", "hole_without_erasure",
     f"""WITH hole AS (INSERT INTO hole SELECT stream_id, segment_id, 0, 1,
            int4multirange(int4range(start_offset::integer, start_offset::integer + 1))
            FROM data_file WHERE {_SECOND})
        UPDATE data_file SET erased = 1 WHERE {_SECOND}"""),
    ("holes that are counted wrong", "hole_sum",
     f"""INSERT INTO hole SELECT stream_id, segment_id, 0, 7,
            int4multirange(int4range(start_offset::integer, start_offset::integer + 1))
        FROM data_file WHERE {_SECOND}"""),
    # Garbage.
    *[(f"garbage that is {what}", "garbage_is_needed",
       f"INSERT INTO garbage (root, path, reason) SELECT {root}, {path}, 'truncated' FROM {of} LIMIT 1")
      for what, root, path, of in (
          ("a file", "''", "path", "data_file WHERE stream_id = :s"),
          ("the folder of a file", "''", "regexp_replace(path, '[^/]+$', '')",
           "data_file WHERE stream_id = :s"),
          ("the folder of a stream", "''", "split_part(path, '/', 1) || '/'",
           "data_file WHERE stream_id = :s"),
          ("a file of a store", "''", "path", "adjunct_file"),
          ("the folder of a store", "''", "split_part(path, '/', 1) || '/'", "adjunct_file"),
          ("an output", "root", "path", "parquet_output WHERE group_id = :g"))],
    # Reader groups.
    ("a skipped batch", "not_delivered", f"DELETE FROM delivered_range WHERE {_RANGE}"),
    ("a gap in what was delivered", "not_delivered",
     f"""WITH d AS (SELECT * FROM delivered_range WHERE {_RANGE}), cut AS (
            UPDATE delivered_range SET to_offset = from_offset + 1, events = 1 WHERE {_RANGE})
        INSERT INTO delivered_range SELECT group_id, stream_id, segment_id, placement,
            from_offset + 2, to_offset, to_offset - from_offset - 2, 0, first_batch, last_batch,
            first_at, last_at FROM d"""),
    ("a batch committed twice", "delivered_twice",
     f"UPDATE delivered_range SET events = events * 2 WHERE {_RANGE}"),
    ("ranges that overlap", "delivered_twice",
     f"""INSERT INTO delivered_range SELECT group_id, stream_id, segment_id, placement,
            from_offset + 1, to_offset, to_offset - from_offset - 1, 0, first_batch, last_batch,
            first_at, last_at FROM delivered_range WHERE {_RANGE}"""),
    ("fewer events than offsets", "delivered_sum",
     f"UPDATE delivered_range SET events = events - 1 WHERE {_RANGE}"),
    ("a batch from before the reset", "delivered_before_start",
     """UPDATE delivered_range SET from_offset = from_offset - 1, events = events + 1
        WHERE (group_id, stream_id, segment_id, placement, from_offset) = (
            SELECT group_id, stream_id, segment_id, placement, from_offset FROM delivered_range
            WHERE group_id = :g AND from_offset > 0 ORDER BY placement DESC, segment_id LIMIT 1)"""),
    ("a position moved back", "delivered_beyond_position",
     f"UPDATE reader_group_segment SET next_offset = next_offset - 1 WHERE {_POSITION}"),
    ("a position moved on", "not_delivered",
     """UPDATE reader_group_segment p SET next_offset = t.tail_offset FROM segment_tail t
        WHERE group_id = :g AND p.stream_id = t.stream_id AND p.segment_id = t.segment_id"""),
    ("a position beyond the tail", "position_beyond_tail",
     """UPDATE reader_group_segment p SET next_offset = t.tail_offset + 5 FROM segment_tail t
        WHERE group_id = :g AND p.stream_id = t.stream_id AND p.segment_id = t.segment_id"""),
    ("a position deleted", "keys_without_position",
     f"DELETE FROM reader_group_segment WHERE {_POSITION}"),
    ("all positions in a stream deleted", "no_position",
     "DELETE FROM reader_group_segment WHERE group_id = :g AND stream_id = :s"),
    ("a group without any stream", "no_position",
     "DELETE FROM reader_group_stream WHERE group_id = :g"),
    ("a position that is completed at its offset", "completed_before_end",
     f"UPDATE reader_group_segment SET state = 'completed', reader_id = NULL WHERE {_POSITION}"),
    ("a position that is completed at 0", "completed_before_end",
     f"""UPDATE reader_group_segment SET state = 'completed', reader_id = NULL, next_offset = 0
        WHERE {_POSITION}"""),
    ("a position that waits", "waits_for_nothing",
     f"""UPDATE reader_group_segment SET state = 'future', reader_id = NULL, next_offset = NULL
        WHERE {_POSITION}"""),
    ("a position beside an older one", "waits_for_nobody",
     """INSERT INTO reader_group_segment SELECT :g, g.stream_id, g.segment_id, 'unassigned', g.events
        FROM segment g WHERE g.stream_id = :s AND g.segment_id < (
            SELECT max(segment_id) FROM reader_group_segment WHERE group_id = :g)
          AND NOT EXISTS (SELECT FROM reader_group_segment p
                          WHERE p.group_id = :g AND p.segment_id = g.segment_id)"""),
    ("the last placement deleted", "placement_missing",
     """DELETE FROM placement WHERE group_id = :g AND number = (
            SELECT max(number) FROM placement WHERE group_id = :g)"""),
    ("a placement in the middle deleted", "placement_missing",
     """DELETE FROM placement WHERE group_id = :t AND number = 2"""),
    ("all placements deleted", "placement_missing", "DELETE FROM placement WHERE group_id = :g"),
    ("a placement moved back", "not_delivered",
     """UPDATE placement SET cut = (SELECT jsonb_object_agg(key, 0) FROM jsonb_each(cut))
        WHERE group_id = :g AND number = (SELECT max(number) FROM placement WHERE group_id = :g)"""),
    ("a placement moved on", "position_before_start",
     """UPDATE placement SET cut = (SELECT jsonb_object_agg(
            segment_name(segment_id), tail_offset) FROM segment_tail WHERE stream_id = :s)
        WHERE group_id = :g AND number = (SELECT max(number) FROM placement WHERE group_id = :g)"""),
    ("the first placement moved", "placement_differs",
     """UPDATE placement SET cut = '{"0.0": 1, "1.0": 0}' WHERE group_id = :g AND number = 1"""),
    ("a placement that left elsewhere", "delivered_beyond_position",
     """UPDATE placement SET left_at = (SELECT cut FROM placement WHERE group_id = :g AND number = 1)
        WHERE group_id = :g AND number = 2"""),
    ("a placement that left nothing", "placement_differs",
     "UPDATE placement SET left_at = NULL WHERE group_id = :g AND number = 2"),
    ("a placement of another cause", "placement_differs",
     "UPDATE placement SET cause = 'entered' WHERE group_id = :g AND number = 2"),
    ("a placement of another time", "placement_differs",
     "UPDATE placement SET placed_at = now() WHERE group_id = :g AND number = 1"),
    ("a placement of another group", "placement_differs",
     "UPDATE placement SET group_name = 'other' WHERE group_id = :g AND number = 2"),
    ("a store put before where it was", "position_before_start",
     """UPDATE placement SET cut = (SELECT jsonb_object_agg(
            segment_name(segment_id), tail_offset) FROM segment_tail WHERE stream_id = :s)
        WHERE group_id = :t AND number = 2"""),
    *[(f"a checkpoint moved {how}", "checkpoint_moved",
       f"""UPDATE checkpoint SET cuts = jsonb_set(cuts, ARRAY[CAST(:s AS bigint)::text], {cut})
        WHERE group_id = :{who} AND name = '{name}'""")
      for how, who, name, cut in (
          ("back", "g", "c4", """'{"0.0": 0, "1.0": 0}'"""),
          ("back by one", "g", "c0", "cuts -> CAST(:s AS bigint)::text || '{\"0.0\": 4}'"),
          ("on by one", "g", "c0", "cuts -> CAST(:s AS bigint)::text || '{\"0.0\": 6}'"),
          ("on to the tail", "w", "c4", """(SELECT jsonb_object_agg(
               segment_name(segment_id), tail_offset) FROM segment_tail WHERE stream_id = :s)"""),
          ("to fewer keys", "g", "c4", """'{"0.0": 5}'"""),
          ("to nowhere", "g", "c4", "'{}'"))],
    ("a checkpoint of no stream", "checkpoint_moved",
     "UPDATE checkpoint SET cuts = '{}' WHERE group_id = :g AND name = 'c5'"),
    ("a placement deleted", "placement_missing",
     "DELETE FROM placement WHERE group_id = :g AND number = 1"),
    ("events skipped that are kept", "skipped_what_was_kept",
     """UPDATE placement SET cut = (SELECT jsonb_object_agg(
            segment_name(segment_id), tail_offset) FROM segment_tail WHERE stream_id = :s)
        WHERE group_id = :w AND cause = 'skipped' AND number = (
            SELECT max(number) FROM placement WHERE group_id = :w)"""),
    *[(f"a loss of {lost} that is {said}", kind,
       f"""UPDATE truncation SET subscribers = jsonb_set(subscribers, ARRAY[g.name, 'lost'], '{value}')
        FROM reader_group g WHERE g.group_id = :{who} AND stream_id = :s AND subscribers ? g.name
          AND (subscribers -> g.name ->> 'lost')::bigint > 1""")
      for who, lost in (("w", "a reader"), ("t", "a store"))
      for said, value, kind in (
          ("none", "0", "lost_without_a_word"), ("one", "1", "lost_differs"),
          ("more", "777", "lost_differs"), ("less than none", "-3", "lost_differs"))],
    *[(f"a loss that is {said}", kind,
       f"""UPDATE truncation SET subscribers = subscribers #- ARRAY[g.name, 'lost']
        || jsonb_build_object(g.name, (subscribers -> g.name) || '{{"lost": {value}}}')
        FROM reader_group g WHERE g.group_id = :w AND stream_id = :s AND subscribers ? g.name""")
      for said, value, kind in (("a word", '"four"', "lost_without_a_word"),
                                ("null", "null", "lost_without_a_word"))],
    ("losses of a receipt both edited alike", "lost_differs",
     """UPDATE truncation SET lost = lost || jsonb_build_object(g.name, 1), subscribers = jsonb_set(
            subscribers, ARRAY[g.name, 'lost'], '1')
        FROM reader_group g WHERE g.group_id = :w AND stream_id = :s AND lost ? g.name"""),
    ("a loss that nobody had", "lost_differs",
     """UPDATE truncation SET subscribers = jsonb_set(subscribers, ARRAY[g.name, 'lost'], '1')
        FROM reader_group g WHERE g.group_id = :g AND stream_id = :s AND number = 1"""),
    ("a loss that the list of losses has not", "lost_differs",
     """UPDATE truncation SET lost = '{}' WHERE stream_id = :s AND lost <> '{}'"""),
    ("a loss by then that is another", "lost_so_far",
     """UPDATE truncation SET subscribers = jsonb_set(
            subscribers, ARRAY[g.name, 'lost_so_far'], '1000')
        FROM reader_group g WHERE g.group_id = :w AND stream_id = :s AND subscribers ? g.name
          AND number = (SELECT max(number) FROM truncation WHERE stream_id = :s)"""),
    ("a receipt without its subscribers", "subscriber_not_named",
     """UPDATE truncation SET subscribers = '{}', lost = '{}' WHERE stream_id = :s AND lost <> '{}'"""),
    ("a receipt whose subscribers are no object", "subscriber_not_named",
     """UPDATE truncation SET subscribers = '[]' WHERE stream_id = :s AND number = 1"""),
    ("a receipt without a subscriber that lost nothing", "subscriber_not_named",
     """UPDATE truncation SET subscribers = subscribers - g.name
        FROM reader_group g WHERE g.group_id = :g AND stream_id = :s AND number = 1"""),
    ("a subscriber that nobody knows", "receipt_of_stranger",
     """UPDATE truncation SET subscribers = subscribers || jsonb_build_object('nobody',
            '{"group_id": 99999, "lost": 0, "lost_so_far": 0}'::jsonb)
        WHERE stream_id = :s AND number = 1"""),
    ("a subscriber with the number of another", "receipt_of_stranger",
     """UPDATE truncation SET subscribers = jsonb_set(
            subscribers, ARRAY[g.name, 'group_id'], to_jsonb(CAST(:w AS bigint)))
        FROM reader_group g WHERE g.group_id = :g AND stream_id = :s AND number = 1"""),
    ("a released position moved back", "released_moved_back",
     """UPDATE reader_group_stream SET released_cut = start_cut WHERE group_id = :g"""),
    ("a store that is elsewhere", "store_position",
     """UPDATE adjunct_version SET cut = from_cut WHERE superseded_at IS NULL
        AND state = 'published'"""),
    # Batches.
    *[(f"the {which} batch removed", "batch_gone",
       f"""WITH gone AS (DELETE FROM reader_batch r WHERE group_id = :g AND batch_id = (
                SELECT {which}_batch FROM delivered_range WHERE group_id = :g
                ORDER BY {which}_batch {order} LIMIT 1) RETURNING group_id, batch_id),
            o AS (DELETE FROM parquet_output o USING gone WHERE o.group_id = gone.group_id
                AND o.batch_id = gone.batch_id)
        DELETE FROM batch_input i USING gone
        WHERE i.group_id = gone.group_id AND i.batch_id = gone.batch_id""")
      for which, order in (("first", ""), ("last", "DESC"))],
    ("all batches removed", "batch_gone", """WITH gone AS (
            DELETE FROM reader_batch WHERE group_id = :g)
        DELETE FROM batch_input WHERE group_id = :g"""),
    ("a batch that nobody was given", "batch_not_delivered",
     f"""UPDATE batch_input SET from_offset = from_offset + 1000, to_offset = to_offset + 1000
        WHERE {_BATCH}"""),
    ("batches with a gap", "batch_missing",
     f"UPDATE batch_input SET to_offset = to_offset - 1 WHERE {_BATCH} AND to_offset - from_offset > 1"),
    ("batches that overlap", "batches_overlap",
     f"UPDATE batch_input SET to_offset = to_offset + 1 WHERE {_BATCH}"),
    ("a batch whose input is forgotten", "batch_input_differs",
     f"DELETE FROM batch_input WHERE {_BATCH}"),
    ("other bounds than it read", "batch_input_differs",
     f"""UPDATE reader_batch SET bounds = jsonb_set(bounds, '{{0,to}}', '100000') WHERE {_BATCH}"""),
    ("a doubled output", "output_twice",
     f"""INSERT INTO parquet_output SELECT group_id, group_name, output, number + 100, batch_id, root,
            path || 'again/', partitions, committed_at FROM parquet_output WHERE {_BATCH}"""),
    ("an output forgotten", "output_missing", f"DELETE FROM parquet_output WHERE {_BATCH}"),
    ("an output of another attempt", "output_unknown",
     f"UPDATE parquet_output SET path = 'o/attempt=9/' WHERE {_BATCH}"),
    ("a folder left out of the list", "output_number", f"DELETE FROM parquet_output WHERE {_BATCH}"),
    ("an append of a batch undone", "append_missing",
     "UPDATE transaction SET state = 'aborted', clock = NULL WHERE stream_id = :o AND transaction_number = 3"),
    ("an append that its batch does not name", "append_unknown",
     f"""UPDATE reader_batch SET outputs = '[]' WHERE {_BATCH}"""),
]  # fmt: skip
