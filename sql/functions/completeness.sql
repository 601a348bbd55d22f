-- A writer that states an earlier time than before changes nothing, also after `done`: only a commit takes that back,
-- because a statement without one may be late. The stream is complete to the earliest time that
-- its writers have stated, without writers that have stated `done`. It never becomes complete to less than before.
CREATE OR REPLACE FUNCTION weir_internal.stated(s weir_internal.stream, in_writer_id text, in_until bigint)
RETURNS bigint
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO weir_internal.stream_writer AS w (stream_id, writer_id, complete_until, stated_at)
    VALUES (s.stream_id, in_writer_id, in_until, clock_timestamp())
    ON CONFLICT (stream_id, writer_id) DO UPDATE
    SET complete_until = excluded.complete_until, stated_at = excluded.stated_at
    WHERE excluded.complete_until > w.complete_until;
    RETURN greatest(s.complete_until, (
        SELECT min(w.complete_until) FROM weir_internal.stream_writer w
        WHERE w.stream_id = s.stream_id AND w.complete_until < 9223372036854775807));
END $$;
COMMENT ON FUNCTION weir_internal.stated(weir_internal.stream, text, bigint) IS 'Records what a writer states about a locked stream, and returns the event time that the stream is complete to then.';

-- The clock of the stream does not count: it stays ahead once Postgres's clock was. Nor do its events.
CREATE OR REPLACE FUNCTION weir_internal.not_after(s weir_internal.stream) RETURNS bigint
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$ SELECT weir_internal.now_clock() + 1000000 * s.event_time_ahead $$;
COMMENT ON FUNCTION weir_internal.not_after(weir_internal.stream) IS 'The latest event time that a stream takes as right now: now, and what its setting event_time_ahead adds.';

CREATE OR REPLACE FUNCTION weir_internal.not_yet(s weir_internal.stream, in_until bigint) RETURNS boolean
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT in_until < 9223372036854775807  -- the largest: the writer appends nothing more
       AND in_until > weir_internal.not_after(s)
$$;
COMMENT ON FUNCTION weir_internal.not_yet(weir_internal.stream, bigint) IS 'Whether nobody can have appended everything up to an event time, because it is later than now.';

-- Records a statement without an append. Returns `stated` or `done` (the writer has said so, and that stays), or says why nothing was changed.
CREATE OR REPLACE FUNCTION weir_internal.state_completeness(in_scope text, in_name text, in_writer_id text, in_until bigint)
RETURNS text
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    s weir_internal.stream;
    stream_until bigint;
BEGIN
    SELECT * INTO s FROM weir_internal.stream o
    WHERE o.scope = in_scope AND o.name = in_name AND o.state <> 'deleted' FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN 'no stream';
    ELSIF s.state <> 'active' THEN
        RETURN s.state;
    ELSIF s.event_time IS NULL THEN
        RETURN 'no event time';
    ELSIF weir_internal.not_yet(s, in_until) THEN
        RETURN 'not yet';
    ELSIF in_until < 9223372036854775807 AND EXISTS (
        SELECT FROM weir_internal.stream_writer w WHERE w.stream_id = s.stream_id
          AND w.writer_id = in_writer_id AND w.complete_until = 9223372036854775807) THEN
        RETURN 'done';
    END IF;
    stream_until := weir_internal.stated(s, in_writer_id, in_until);
    UPDATE weir_internal.stream o SET complete_until = stream_until WHERE o.stream_id = s.stream_id;
    IF stream_until IS DISTINCT FROM s.complete_until THEN
        PERFORM weir_internal.queue_announcements(s, -weir_internal.now_clock(), false, stream_until, false);
    END IF;
    RETURN 'stated';
END $$;
COMMENT ON FUNCTION weir_internal.state_completeness(text, text, text, bigint) IS 'Locks a stream and records what a writer states about it.';

-- A mapped task is a writer for each index. A run that maps fewer than before has nothing to append for the others.
CREATE OR REPLACE FUNCTION weir_internal.state_unmapped(
    in_scope text, in_name text, in_task text, in_count integer, in_until bigint) RETURNS text[]
LANGUAGE sql VOLATILE SET search_path = pg_catalog, pg_temp
AS $$
    WITH unmapped AS MATERIALIZED (
        SELECT w.writer_id FROM weir_internal.stream s JOIN weir_internal.stream_writer w USING (stream_id)
        WHERE s.scope = in_scope AND s.name = in_name AND s.state <> 'deleted' AND w.complete_until < in_until
          AND CASE WHEN left(w.writer_id, length(in_task) + 1) = in_task || '/'
                    AND substr(w.writer_id, length(in_task) + 2) ~ '^[0-9]{1,9}$'
              THEN substr(w.writer_id, length(in_task) + 2)::integer >= in_count END
        ORDER BY w.writer_id
    ), told AS MATERIALIZED (
        SELECT u.writer_id, weir_internal.state_completeness(in_scope, in_name, u.writer_id, in_until) AS outcome
        FROM unmapped u
    )
    SELECT array_agg(t.writer_id) FROM told t WHERE t.outcome = 'stated'
$$;
COMMENT ON FUNCTION weir_internal.state_unmapped(text, text, text, integer, bigint) IS 'States what is complete for those writers of a mapped task (`dag_id/task_id`) that its run, which maps so many, does not have; returns them, or null.';

-- Commits keep what they said of late events. What they say the stream was complete to is what groups go by.
CREATE OR REPLACE FUNCTION weir_internal.take_back(s weir_internal.stream, in_until bigint)
RETURNS TABLE (airflow text, kind text, since bigint, until bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp ROWS 10
AS $$
BEGIN
    IF in_until IS NULL THEN
        DELETE FROM weir_internal.stream_writer w WHERE w.stream_id = s.stream_id;
    ELSE
        UPDATE weir_internal.stream_writer w SET complete_until = in_until, stated_at = clock_timestamp()
        WHERE w.stream_id = s.stream_id AND w.complete_until > in_until AND w.complete_until < 9223372036854775807;
    END IF;
    UPDATE weir_internal.transaction t SET complete_until = in_until
    WHERE t.stream_id = s.stream_id AND t.clock > s.event_time_since
      AND (t.complete_until > in_until OR (in_until IS NULL AND t.complete_until IS NOT NULL));
    UPDATE weir_internal.stream o SET complete_until = in_until WHERE o.stream_id = s.stream_id;
-- each annex: taken_back.sql
END $$;
COMMENT ON FUNCTION weir_internal.take_back(weir_internal.stream, bigint) IS 'Makes a locked stream complete to an earlier event time than its writers have stated, or to none, and returns what annexes announced that is complete no longer, and that they will announce again.';
