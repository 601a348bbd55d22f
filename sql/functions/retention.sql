-- What a decision of retention depends on. These are functions because Postgres plans a function once per session,
-- and because both the run and people use them. The rules are in decide_retention.

-- Semantics 11.4. A minimum that is not set counts as 0; of equal records the first is taken. A stream whose tail
-- does not move is not captured. So if nothing was appended between the newest record that is too old and the time
-- that is the maximum age ago, the tail at that time is that record, not the next one. The same is true if the next
-- one was captured much later because nothing was captured for a while.
CREATE OR REPLACE FUNCTION weir_internal.retention_limits(in_stream_id bigint, in_now timestamptz, in_bytes bigint)
RETURNS TABLE (which text, recorded_at timestamptz, cut jsonb, bytes bigint)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 5
AS $$
#variable_conflict use_column
DECLARE
    p weir_internal.stream;
    old_enough timestamptz;
    too_old timestamptz;
    big_enough bigint;
    candidate record;
BEGIN
    SELECT * INTO p FROM weir_internal.stream s WHERE s.stream_id = in_stream_id;
    old_enough := in_now - coalesce(p.retain_min_age, 0) * interval '1 second';
    big_enough := in_bytes - coalesce(p.retain_min_bytes, 0);
    IF p.retain_min_age IS NOT NULL THEN
        RETURN QUERY SELECT 'min_age', c.recorded_at, c.cut, c.bytes FROM weir_internal.stream_cut c
        WHERE c.stream_id = in_stream_id AND c.recorded_at <= old_enough
        ORDER BY c.recorded_at DESC LIMIT 1;
    END IF;
    IF p.retain_min_bytes IS NOT NULL THEN
        RETURN QUERY SELECT 'min_bytes', c.recorded_at, c.cut, c.bytes FROM weir_internal.stream_cut c
        WHERE c.stream_id = in_stream_id AND c.bytes <= big_enough
        ORDER BY c.bytes DESC, c.recorded_at LIMIT 1;
    END IF;
    IF p.retain_max_age IS NOT NULL THEN
        too_old := in_now - p.retain_max_age * interval '1 second';
        SELECT c.recorded_at, c.cut, c.bytes INTO candidate FROM weir_internal.stream_cut c
        WHERE c.stream_id = in_stream_id AND c.recorded_at <= too_old
        ORDER BY c.recorded_at DESC LIMIT 1;
        IF FOUND THEN
            RETURN QUERY SELECT 'past_max_age', candidate.recorded_at, candidate.cut, candidate.bytes;
        END IF;
        IF FOUND AND coalesce(weir_internal.clock_time(weir_internal.clock_after(in_stream_id,
               weir_internal.readable_cut(in_stream_id, candidate.cut, p.head))) > too_old, true) THEN
            RETURN QUERY SELECT 'within_max_age', candidate.recorded_at, candidate.cut, candidate.bytes;
        ELSE
            SELECT c.recorded_at, c.cut, c.bytes INTO candidate FROM weir_internal.stream_cut c
            WHERE c.stream_id = in_stream_id
              AND c.recorded_at >= too_old AND c.recorded_at <= old_enough
            ORDER BY c.recorded_at LIMIT 1;
            IF candidate.recorded_at > too_old + greatest(
                   interval '1 hour', 2 * p.cuts_every * interval '1 second') THEN
                RETURN QUERY SELECT 'within_max_age', too_old, t.cut, z.bytes
                FROM (SELECT weir.stream_cut_at(p.stream_name, too_old) AS cut) t
                CROSS JOIN LATERAL weir_internal.size_till(in_stream_id, t.cut) z;
            ELSIF candidate.recorded_at IS NOT NULL THEN
                RETURN QUERY
                SELECT 'within_max_age', candidate.recorded_at, candidate.cut, candidate.bytes;
            ELSE
                RETURN QUERY SELECT 'within_max_age', c.recorded_at, c.cut, c.bytes
                FROM weir_internal.stream_cut c
                WHERE c.stream_id = in_stream_id AND c.recorded_at <= old_enough
                ORDER BY c.recorded_at DESC LIMIT 1;
            END IF;
        END IF;
    END IF;
    IF p.retain_max_bytes IS NOT NULL THEN
        RETURN QUERY SELECT 'within_max_bytes', c.recorded_at, c.cut, c.bytes
        FROM weir_internal.stream_cut c
        WHERE c.stream_id = in_stream_id AND c.bytes >= in_bytes - p.retain_max_bytes
          AND c.bytes <= big_enough
        ORDER BY c.bytes, c.recorded_at LIMIT 1;
        IF NOT FOUND THEN
            RETURN QUERY SELECT 'within_max_bytes', c.recorded_at, c.cut, c.bytes
            FROM weir_internal.stream_cut c
            WHERE c.stream_id = in_stream_id AND c.bytes <= big_enough
            ORDER BY c.bytes DESC, c.recorded_at LIMIT 1;
        END IF;
    END IF;
END $$;
COMMENT ON FUNCTION weir_internal.retention_limits(bigint, timestamptz, bigint) IS 'The recorded cuts that stand for the limits of a stream at a time and a size of the stream: retention may not pass min_age and min_bytes; what past_max_age has passed is too old; within_max_age and within_max_bytes are where a maximum truncates.';

-- The time-out of a subscriber with unread events begins with the last activity of its readers, or when the first
-- of the unread events was committed, whichever is later. It does not end before the lease of a reader with an open
-- batch, because a reader that dies cannot report it. No reader can renew its lease while Postgres is down: leases
-- that expired meanwhile count until their readers had time to return. The time-out of a subscriber that releases
-- manually begins with its last release (PDP-47), or when there was first something to release, because its readers'
-- activity releases nothing.
CREATE OR REPLACE FUNCTION weir_internal.times_out_at(in_group_id bigint, in_stream_id bigint) RETURNS timestamptz
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    g weir_internal.reader_group;
    unread bigint;
    released timestamptz;
BEGIN
    SELECT * INTO g FROM weir_internal.reader_group r WHERE r.group_id = in_group_id;
    IF g.time_out IS NULL OR NOT g.subscriber THEN
        RETURN NULL;
    END IF;
    SELECT weir_internal.oldest_unread(in_stream_id, weir_internal.readable_cut(
               in_stream_id, CASE WHEN g.release = 'manual' THEN gs.released_cut
                             ELSE weir_internal.group_cut(in_group_id, in_stream_id) END, s.head),
               gs.end_cut), gs.released_at
    INTO unread, released
    FROM weir_internal.reader_group_stream gs JOIN weir_internal.stream s USING (stream_id)
    WHERE gs.group_id = in_group_id AND gs.stream_id = in_stream_id;
    IF g.release = 'manual' THEN
        RETURN CASE WHEN unread IS NOT NULL THEN
            greatest(released, weir_internal.clock_time(unread)) + g.time_out * interval '1 second' END;
    END IF;
    RETURN CASE WHEN unread IS NOT NULL THEN greatest(
        greatest(g.moved_at, weir_internal.clock_time(unread)) + g.time_out * interval '1 second',
        (SELECT max(CASE WHEN r.lease_until < pg_postmaster_start_time()
                         THEN pg_postmaster_start_time() + interval '10 minutes'
                         ELSE r.lease_until END)
         FROM weir_internal.reader_batch b JOIN weir_internal.reader r USING (group_id, reader_id)
         WHERE b.group_id = in_group_id AND b.state = 'open' AND r.token = b.token)) END;
END $$;
COMMENT ON FUNCTION weir_internal.times_out_at(bigint, bigint) IS 'When retention stops waiting for a subscriber of a stream; null while nothing is unread, or if it has no time-out.';

-- A subscriber with an end that has released (or lost) everything before it needs nothing more, so retention asks
-- only the others. If all subscribers have finished, retention may truncate what at least one has released.
CREATE OR REPLACE FUNCTION weir_internal.subscribers_to_ask(in_stream_id bigint, in_at timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (group_id bigint, name text, cut jsonb, times_out_at timestamptz)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 3
AS $$
    WITH RECURSIVE h AS MATERIALIZED (
        SELECT g.group_id, g.name, gs.released_cut AS cut, p.readable,
               weir_internal.times_out_at(g.group_id, in_stream_id) AS times_out_at,
               CASE WHEN p.readable IS NULL THEN false
                    ELSE weir_internal.oldest_unread(in_stream_id, p.readable, gs.end_cut) IS NULL END AS finished
        FROM weir_internal.reader_group_stream gs JOIN weir_internal.reader_group g USING (group_id)
        JOIN weir_internal.stream s USING (stream_id)
        CROSS JOIN LATERAL (
            SELECT CASE WHEN gs.end_cut IS NOT NULL
                THEN weir_internal.readable_cut(in_stream_id, gs.released_cut, s.head) END AS readable OFFSET 0) p
        WHERE gs.stream_id = in_stream_id AND g.subscriber
    ), done AS MATERIALIZED (
        SELECT h.readable, row_number() OVER () AS n
        FROM h WHERE h.finished AND coalesce(h.times_out_at > in_at, true)
    ), any_of AS (
        SELECT d.readable, d.n FROM done d WHERE d.n = 1
        UNION ALL
        SELECT weir_internal.join_cuts(in_stream_id, a.readable, d.readable), d.n
        FROM any_of a JOIN done d ON d.n = a.n + 1
    )
    SELECT h.group_id, h.name,
           coalesce((SELECT a.readable FROM any_of a WHERE h.finished ORDER BY a.n DESC LIMIT 1), h.cut),
           h.times_out_at
    FROM h
    WHERE NOT h.finished OR NOT EXISTS (
        SELECT FROM h o
        WHERE NOT o.finished AND coalesce(o.times_out_at > in_at, true))
$$;
COMMENT ON FUNCTION weir_internal.subscribers_to_ask(bigint, timestamptz) IS 'The subscribers that retention must ask at a time: what each has released, and when it times out.';

-- Of a locked stream, or of one as it would be at a later time if nothing happened. next_at: when time alone will change
-- the decision, or cause an alert.
CREATE OR REPLACE FUNCTION weir_internal.retention_inputs(in_stream_id bigint, in_at timestamptz DEFAULT clock_timestamp())
RETURNS TABLE (now timestamptz, tail_events bigint, tail_bytes bigint, head_events bigint,
               head_bytes bigint, subscribers jsonb, limits jsonb, next_at timestamptz)
LANGUAGE plpgsql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
#variable_conflict use_column
BEGIN
    now := in_at;
    SELECT z.events, z.bytes INTO tail_events, tail_bytes
    FROM weir_internal.size_till(in_stream_id, weir_internal.tail_cut(in_stream_id)) z;
    SELECT z.events, z.bytes INTO head_events, head_bytes
    FROM weir_internal.stream s CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, s.head) z
    WHERE s.stream_id = in_stream_id;
    SELECT coalesce(jsonb_agg(jsonb_build_object('name', h.name, 'cut', h.cut,
               'timed_out', coalesce(h.times_out_at <= now, false)) ORDER BY h.name) FILTER (WHERE
               (SELECT s.retention = 'consumed' FROM weir_internal.stream s WHERE s.stream_id = in_stream_id)), '[]'),
           least(min(h.times_out_at) FILTER (WHERE h.times_out_at > now),
                 min(w.at) FILTER (WHERE w.at > now))
    INTO subscribers, next_at
    FROM weir_internal.subscribers_to_ask(in_stream_id, now) h
    CROSS JOIN LATERAL (
        SELECT weir_internal.loses_after(h.group_id, in_stream_id) - weir_internal.warning_time(in_stream_id) AS at) w;
    SELECT coalesce(jsonb_object_agg(l.which, jsonb_build_object(
               'recorded_at', extract(epoch FROM l.recorded_at), 'cut', l.cut, 'bytes', l.bytes)),
           '{}')
    INTO limits FROM weir_internal.retention_limits(in_stream_id, now, tail_bytes) l;
    -- When the next record reaches an age limit.
    next_at := least(next_at, (
        SELECT min(n.at) FROM weir_internal.stream s
        CROSS JOIN LATERAL unnest(ARRAY[s.retain_min_age, s.retain_max_age]) AS a (age)
        CROSS JOIN LATERAL (
            SELECT c.recorded_at + a.age * interval '1 second' AS at FROM weir_internal.stream_cut c
            WHERE c.stream_id = s.stream_id
              AND c.recorded_at > now - a.age * interval '1 second'
            ORDER BY c.recorded_at LIMIT 1) n
        WHERE s.stream_id = in_stream_id AND a.age IS NOT NULL));
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION weir_internal.retention_inputs(bigint, timestamptz) IS 'What a decision of retention depends on.';

-- Rates are those of the last day, or since the stream or the group began. A maximum truncates unreleased events,
-- but not before each minimum allows it.
CREATE OR REPLACE FUNCTION weir_internal.loses_after(in_group_id bigint, in_stream_id bigint, in_within interval DEFAULT NULL)
RETURNS timestamptz
LANGUAGE plpgsql STABLE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    now CONSTANT timestamptz := clock_timestamp();
    s weir_internal.stream;
    released jsonb;
    last jsonb;
    before record;
    first bigint;
    done bigint;
    tail bigint;
    beyond bigint;
    passed double precision := 0;
    freed double precision := 0;
    speed double precision := 0;
    due double precision;
BEGIN
    SELECT * INTO s FROM weir_internal.stream o WHERE o.stream_id = in_stream_id;
    IF s.retain_max_age IS NULL AND s.retain_max_bytes IS NULL THEN
        RETURN NULL;
    END IF;
    SELECT weir_internal.readable_cut(in_stream_id, gs.released_cut, s.head), gs.end_cut INTO released, last
    FROM weir_internal.reader_group_stream gs
    WHERE gs.group_id = in_group_id AND gs.stream_id = in_stream_id;
    first := weir_internal.oldest_unread(in_stream_id, released, last);
    IF first IS NULL OR s.retain_max_bytes IS NULL  -- rates may only put an age off
       AND weir_internal.clock_time(first) + s.retain_max_age * interval '1 second' > now + in_within THEN
        RETURN NULL;
    END IF;
    SELECT z.bytes INTO done FROM weir_internal.size_till(in_stream_id, released) z;
    SELECT b.at, b.cut INTO before FROM (
        (SELECT c.created_at AS at, c.cuts -> in_stream_id::text AS cut, 1 AS rank
         FROM weir_internal.checkpoint c WHERE c.group_id = in_group_id AND c.released
           AND c.cuts ? in_stream_id::text AND c.created_at <= now - interval '1 day'
         ORDER BY c.created_at DESC LIMIT 1)
        UNION ALL
        SELECT g.created_at, gs.start_cut, 2
        FROM weir_internal.reader_group_stream gs JOIN weir_internal.reader_group g USING (group_id)
        WHERE gs.group_id = in_group_id AND gs.stream_id = in_stream_id) b
    ORDER BY b.rank LIMIT 1;
    BEGIN
        passed := coalesce(greatest(first - weir_internal.clock_after(in_stream_id, before.cut), 0), 0)
                  / greatest(1, 1000000 * extract(epoch FROM now - before.at));
        SELECT greatest(done - z.bytes, 0) / greatest(1, extract(epoch FROM now - before.at))
        INTO freed FROM weir_internal.size_till(in_stream_id, before.cut) z;
    EXCEPTION WHEN SQLSTATE 'WEIR2' THEN
        NULL;  -- its rows are pruned: count as if nothing was released since
    END;
    SELECT z.bytes INTO tail FROM weir_internal.size_till(in_stream_id, weir_internal.tail_cut(in_stream_id)) z;
    IF s.retain_max_bytes IS NOT NULL OR s.retain_min_bytes IS NOT NULL THEN
        SELECT (tail - r.bytes) / greatest(1, extract(epoch FROM now - r.at)) - freed
        INTO speed FROM (
            (SELECT c.recorded_at AS at, c.bytes, 1 AS rank FROM weir_internal.stream_cut c
             WHERE c.stream_id = in_stream_id AND c.recorded_at <= now - interval '1 day'
             ORDER BY c.recorded_at DESC LIMIT 1)
            UNION ALL
            (SELECT c.recorded_at, c.bytes, 2 FROM weir_internal.stream_cut c
             WHERE c.stream_id = in_stream_id ORDER BY c.recorded_at LIMIT 1)
            UNION ALL SELECT s.created_at, 0, 3) r
        ORDER BY r.rank LIMIT 1;
        -- A minimum size that keeps a part of a record keeps all of it.
        SELECT tail - coalesce(min(c.bytes), tail) INTO beyond
        FROM weir_internal.stream_cut c WHERE c.stream_id = in_stream_id AND c.bytes > done;
    END IF;
    -- In how many seconds each minimum allows it, or each maximum demands it; infinity: never.
    WITH each AS (
        SELECT a.kind, CASE WHEN d.due <= 0 THEN d.due WHEN passed < 1 THEN d.due / (1 - passed)
                            ELSE 'infinity' END AS due
        FROM (VALUES ('min', s.retain_min_age), ('max', s.retain_max_age)) a (kind, age)
        CROSS JOIN LATERAL (SELECT
            (extract(epoch FROM weir_internal.clock_time(first) - now) + a.age)::double precision AS due) d
        WHERE a.age IS NOT NULL
        UNION ALL
        SELECT z.kind, CASE WHEN z.room <= 0 THEN 0 WHEN speed > 0 THEN z.room / speed
                            ELSE 'infinity' END  -- a stream of exactly the maximum is allowed
        FROM (VALUES ('min', s.retain_min_bytes - beyond),
                     ('max', s.retain_max_bytes - (tail - done) + 1.0)) z (kind, room)
        WHERE z.room IS NOT NULL
    )
    SELECT greatest(m.least, m.most) INTO due
    FROM (SELECT max(e.due) FILTER (WHERE e.kind = 'min') AS least,
                 min(e.due) FILTER (WHERE e.kind = 'max') AS most FROM each e) m;
    RETURN CASE WHEN due < 3e9 THEN now + due * interval '1 second' END;
END $$;
COMMENT ON FUNCTION weir_internal.loses_after(bigint, bigint, interval) IS 'When, at the present rates, retention will truncate events that a subscriber has not released: those that exceed a maximum and that no minimum keeps. Null: never, or it may be not within a span.';

-- Includes unread events that a subscriber released manually, and events of open batches.
CREATE OR REPLACE FUNCTION weir_internal.unread_events_lost(in_stream_id bigint, in_cut jsonb, in_subscribers boolean DEFAULT true)
RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
    SELECT coalesce(jsonb_object_agg(g.name, o.events - n.events), '{}')
    FROM weir_internal.stream s JOIN weir_internal.reader_group_stream gs USING (stream_id)
    JOIN weir_internal.reader_group g USING (group_id)
    CROSS JOIN LATERAL (SELECT weir_internal.group_cut(gs.group_id, gs.stream_id) AS cut OFFSET 0) p
    CROSS JOIN LATERAL weir_internal.unread_from(in_stream_id, p.cut, in_cut, gs.end_cut) n
    CROSS JOIN LATERAL weir_internal.unread_from(in_stream_id, p.cut, s.head, gs.end_cut) o
    WHERE s.stream_id = in_stream_id AND g.subscriber = in_subscribers AND p.cut <> in_cut
      AND NOT weir_internal.at_or_before(in_stream_id, in_cut, p.cut) AND o.events > n.events
$$;
COMMENT ON FUNCTION weir_internal.unread_events_lost(bigint, jsonb, boolean) IS 'Per subscriber (or per group that is not a subscriber), how many events it has not read between the head of a stream and the cut at which the stream is to be truncated.';

-- Of locked streams. Without a bound nothing is released. The cut of a group that reads a stream no more is not passed.
CREATE OR REPLACE FUNCTION weir_internal.released_by_all(in_stream_ids bigint[], in_group text)
RETURNS TABLE (stream_id bigint, events bigint, lost jsonb, behind jsonb, passed bigint)
LANGUAGE sql STABLE PARALLEL SAFE SET search_path = pg_catalog, pg_temp ROWS 3
AS $$
    SELECT s.stream_id, coalesce(t.events - h.events, 0),
           CASE WHEN b.cut IS NULL THEN '{}' ELSE weir_internal.unread_events_lost(s.stream_id, b.cut)
                || weir_internal.unread_events_lost(s.stream_id, b.cut, false) END,
           (SELECT coalesce(jsonb_object_agg(g.name, u.events), '{}')
            FROM weir_internal.reader_group_stream gs JOIN weir_internal.reader_group g USING (group_id)
            CROSS JOIN LATERAL weir_internal.unread_from(
                s.stream_id, weir_internal.group_cut(gs.group_id, s.stream_id), s.head, gs.end_cut) u
            WHERE gs.stream_id = s.stream_id AND NOT g.subscriber AND u.events > 0),
           (SELECT z.events - h.events
            FROM weir_internal.reader_group_stream gs JOIN weir_internal.reader_group g USING (group_id)
            CROSS JOIN LATERAL weir_internal.size_till(
                s.stream_id, weir_internal.join_cuts(s.stream_id, gs.released_cut, s.head)) z
            WHERE gs.stream_id = s.stream_id AND g.subscriber AND g.name = in_group)
    FROM weir_internal.stream s
    CROSS JOIN LATERAL (
        SELECT weir_internal.meet_cuts(s.stream_id,
                   array_agg(DISTINCT weir_internal.join_cuts(s.stream_id, u.cut, s.head))) AS cut
        FROM weir_internal.subscribers_to_ask(s.stream_id) u
        WHERE s.retention = 'consumed' AND coalesce(u.times_out_at > clock_timestamp(), true)) b
    CROSS JOIN LATERAL weir_internal.size_till(s.stream_id, s.head) h
    LEFT JOIN LATERAL weir_internal.size_till(s.stream_id, b.cut) t ON b.cut IS NOT NULL
    WHERE s.stream_id = ANY (in_stream_ids)
$$;
COMMENT ON FUNCTION weir_internal.released_by_all(bigint[], text) IS 'Per stream how many events all subscribers have released, how many of these each group has not read (lost), how many events each group has not read that is no subscriber (behind), and how many a group has released (passed; null if it is no subscriber).';

-- Each recorded cut is at or after those before it, so the last one at or before a cut can be found by bisection.
-- Usually it is the newest whose size is not larger. If one segment is far behind, testing each record would take
-- seconds while locks are held.
CREATE OR REPLACE FUNCTION weir_internal.last_record(in_stream_id bigint, in_cut jsonb) RETURNS timestamptz
LANGUAGE plpgsql STABLE STRICT PARALLEL SAFE SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    bytes_before_cut CONSTANT bigint := (SELECT z.bytes FROM weir_internal.size_till(in_stream_id, in_cut) z);
    newest weir_internal.stream_cut;
    known timestamptz[];
    passed integer := 0;  -- how many of them it has passed
    ahead integer;        -- it has not passed this one or a later one
    middle integer;
BEGIN
    SELECT * INTO newest FROM weir_internal.stream_cut r
    WHERE r.stream_id = in_stream_id AND r.bytes <= bytes_before_cut ORDER BY r.recorded_at DESC LIMIT 1;
    IF newest IS NULL OR weir_internal.at_or_before(in_stream_id, newest.cut, in_cut) THEN
        RETURN newest.recorded_at;
    END IF;
    known := array(SELECT r.recorded_at FROM weir_internal.stream_cut r
                   WHERE r.stream_id = in_stream_id AND r.bytes <= bytes_before_cut ORDER BY r.recorded_at);
    ahead := cardinality(known);
    WHILE ahead - passed > 1 LOOP
        middle := (passed + ahead) / 2;
        IF weir_internal.at_or_before(in_stream_id, (
                SELECT r.cut FROM weir_internal.stream_cut r
                WHERE r.stream_id = in_stream_id AND r.recorded_at = known[middle]), in_cut)
        THEN
            passed := middle;
        ELSE
            ahead := middle;
        END IF;
    END LOOP;
    RETURN known[passed];
END $$;
COMMENT ON FUNCTION weir_internal.last_record(bigint, jsonb) IS 'When the last recorded cut at or before a cut was recorded; null if there is none.';
