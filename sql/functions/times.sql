-- A commit gets its clock under the lock of its stream, later than the stream's last one. So the cut at a time can still
-- change if the time is after the last clock: a commit in flight may have an earlier clock. To close the time, this
-- function waits for such commits, and makes the time the last clock. It locks no stream whose last clock is as late or later:
-- that time is closed, even if the server's clock was set back before it.
CREATE OR REPLACE FUNCTION weir_internal.close_streams(in_ids bigint[], in_clock bigint DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now CONSTANT bigint := weir_internal.now_clock();
    clock bigint := in_clock;
    open bigint[];
BEGIN
    open := array(SELECT s.stream_id FROM weir_internal.stream s
                  WHERE s.stream_id = ANY (in_ids) AND (in_clock IS NULL OR s.last_clock < in_clock));
    IF open = '{}' THEN
        RETURN coalesce(in_clock, now);
    END IF;
    IF in_clock > now THEN
        RAISE EXCEPTION '% is in the future; give an earlier time.',
            CASE WHEN in_clock < weir_internal.time_clock('9999-12-31'::timestamptz)
                 THEN to_char(weir_internal.clock_time(in_clock) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || ' UTC'
                 ELSE 'the time' END
            USING ERRCODE = 'WEIR2', DETAIL = 'time_in_future';
    END IF;
    IF current_setting('transaction_read_only')::boolean THEN
        RAISE EXCEPTION 'the time is after the last commit of stream %, and a read-only transaction can''t close it; ask outside of one.',
            (SELECT s.stream_name FROM weir_internal.stream s WHERE s.stream_id = open[1])
            USING ERRCODE = 'WEIR2', DETAIL = 'time_invalid';
    END IF;
    PERFORM FROM weir_internal.lock_streams(open, '{}', '{}');
    IF in_clock IS NULL THEN
        SELECT greatest(max(s.last_clock), weir_internal.now_clock()) INTO clock
        FROM weir_internal.stream s WHERE s.stream_id = ANY (open);
    END IF;
    UPDATE weir_internal.stream SET last_clock = clock
    WHERE stream_id = ANY (open) AND last_clock < clock AND state <> 'deleted';
    RETURN clock;
END $$;
COMMENT ON FUNCTION weir_internal.close_streams(bigint[], bigint) IS 'Closes a clock of streams (null: now, or their last clock if that is later) and returns it: no later commit gets a clock at or before it. The streams stay locked until the end of the transaction, unless their last clock was later.';

CREATE OR REPLACE FUNCTION weir_internal.warn_of_truncated(stream text, since timestamptz, until timestamptz) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    gone CONSTANT record := weir.truncated_between(stream, since, until);
BEGIN
    IF gone.events > 0 THEN
        RAISE WARNING '% events of stream % % were truncated, %', gone.events, stream,
            CASE WHEN until IS NULL THEN 'after this time' ELSE 'between these times' END,
            CASE WHEN gone.truncated_at IS NULL THEN 'longer ago than is recorded'
            ELSE format('the last of them at %s (%s)', gone.truncated_at, gone.reason) END;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.warn_of_truncated(text, timestamptz, timestamptz) IS 'Says in a warning how many events between two times are truncated.';

-- For readers, who may lock and change nothing themselves.
CREATE OR REPLACE FUNCTION weir_internal.close_stream(in_stream_id bigint, in_clock bigint) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    SELECT weir_internal.close_streams(ARRAY[s.stream_id], in_clock) FROM weir_internal.stream s
    WHERE s.stream_id = in_stream_id AND (s.owner IS NULL OR weir_internal.may_act_for(weir_internal.asking(), s.owner))
$$;
COMMENT ON FUNCTION weir_internal.close_stream(bigint, bigint) IS 'Closes a clock of a stream that whoever asks sees.';

CREATE OR REPLACE FUNCTION weir.closed_cut_at(stream text, at timestamptz) RETURNS jsonb
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
BEGIN
    IF at IS NULL THEN
        RAISE EXCEPTION 'the time is NULL; give one, such as 2013-06-01 09:00 UTC.' USING ERRCODE = 'WEIR2', DETAIL = 'argument_missing';
    END IF;
    PERFORM weir_internal.close_stream(sid, weir_internal.time_clock(at));
    PERFORM weir_internal.warn_of_truncated(stream, at, NULL);
    RETURN weir.stream_cut_at(stream, at);
END $$;
COMMENT ON FUNCTION weir.closed_cut_at(text, timestamptz) IS 'As weir.stream_cut_at, and the same whenever it is asked (until truncation): it waits for commits in flight, and no later commit gets an earlier clock. Commits to the stream wait until the end of the transaction that asks. A warning says how many events after the time are truncated: then the cut is the head.';

CREATE OR REPLACE FUNCTION weir.count_between(stream text, since timestamptz DEFAULT NULL, until timestamptz DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    sid CONSTANT bigint := weir_internal.stream_id(stream);
    events bigint;
BEGIN
    IF since > until THEN
        RAISE EXCEPTION 'since, %, is after until, %; give the earlier time first.', since, until
            USING ERRCODE = 'WEIR2', DETAIL = 'time_invalid';
    END IF;
    IF coalesce(until, since) IS NOT NULL THEN
        PERFORM weir_internal.close_stream(sid, weir_internal.time_clock(coalesce(until, since)));
    END IF;
    -- In one statement, which sees one moment: truncation may move the head meanwhile.
    SELECT b.events - a.events INTO events
    FROM weir_internal.stream s
    CROSS JOIN LATERAL weir_internal.size_till(
        sid, CASE WHEN since IS NULL THEN s.head ELSE weir.stream_cut_at(stream, since) END) a
    CROSS JOIN LATERAL weir_internal.size_till(
        sid, CASE WHEN until IS NULL THEN weir_internal.tail_cut(sid) ELSE weir.stream_cut_at(stream, until) END) b
    WHERE s.stream_id = sid;
    IF since IS NOT NULL OR events = 0 THEN
        PERFORM weir_internal.warn_of_truncated(stream, since, until);
    END IF;
    RETURN events;
END $$;
COMMENT ON FUNCTION weir.count_between(text, timestamptz, timestamptz) IS 'How many events of a stream were committed after a time (null: all from the head) and up to another (null: all up to the tail), and can still be read. It closes the later time, as weir.closed_cut_at does, so a second call gives the same. A warning says how many were truncated (weir.truncated_between).';
