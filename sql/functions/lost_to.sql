-- Also what those had not read that have released it by hand, and what an open batch holds.
CREATE FUNCTION weir.lost_to(in_stream_id bigint, in_cut jsonb, in_subscribers boolean DEFAULT true)
RETURNS jsonb
LANGUAGE sql STABLE PARALLEL SAFE SECURITY DEFINER SET search_path = pg_catalog
AS $$
    SELECT coalesce(jsonb_object_agg(g.name, o.events - n.events), '{}')
    FROM weir.stream s JOIN weir.reader_group_stream gs USING (stream_id)
    JOIN weir.reader_group g USING (group_id)
    CROSS JOIN LATERAL (SELECT weir.group_cut(gs.group_id, gs.stream_id) AS cut OFFSET 0) p
    CROSS JOIN LATERAL weir.unread_from(in_stream_id, p.cut, in_cut, gs.end_cut) n
    CROSS JOIN LATERAL weir.unread_from(in_stream_id, p.cut, s.head, gs.end_cut) o
    WHERE s.stream_id = in_stream_id AND g.subscriber = in_subscribers AND p.cut <> in_cut
      AND NOT weir.at_or_before(in_stream_id, in_cut, p.cut) AND o.events > n.events
$$;
COMMENT ON FUNCTION weir.lost_to(bigint, jsonb, boolean) IS 'Per subscriber, or per group that is none, how many events it has not read that lie between the head of a stream and a cut that it is to be truncated at.';
