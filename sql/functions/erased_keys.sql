-- The routing keys that were erased from a stream (semantics 20), for logins that may not read their table.

CREATE OR REPLACE FUNCTION weir_internal.note_erased_keys(in_stream_id bigint, in_keys text[]) RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
    INSERT INTO weir_internal.erased_keys (stream_id, salt, hashes)
    SELECT s.stream_id, uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), '{}'
    FROM weir_internal.stream s
    WHERE s.stream_id = in_stream_id
      AND s.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
    ON CONFLICT (stream_id) DO NOTHING;
    UPDATE weir_internal.erased_keys e SET hashes = (
        SELECT array_agg(n.hash ORDER BY n.hash) FROM (
            SELECT unnest(e.hashes)
            UNION
            SELECT left(encode(sha256(e.salt || convert_to(k, 'UTF8')), 'hex'), 16) FROM unnest(in_keys) k) n (hash))
    WHERE e.stream_id = in_stream_id
      AND e.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()));
$$;
COMMENT ON FUNCTION weir_internal.note_erased_keys(bigint, text[]) IS 'Adds to the hashes of the routing keys that were erased from a locked stream.';

CREATE OR REPLACE FUNCTION weir_internal.erased_keys_of(in_stream_id bigint)
RETURNS TABLE (salt bytea, hashes text[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp ROWS 1
AS $$
    SELECT e.salt, e.hashes FROM weir_internal.erased_keys e JOIN weir_internal.stream s USING (stream_id)
    WHERE s.stream_id = in_stream_id AND s.refuse_erased
      AND s.stream_id NOT IN (SELECT weir_internal.hidden_streams(weir_internal.asking()))
$$;
COMMENT ON FUNCTION weir_internal.erased_keys_of(bigint) IS 'What the keys of an append to a stream are compared with, if it refuses those that were erased from it.';
