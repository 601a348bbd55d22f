CREATE OR REPLACE VIEW weir.erasures AS
SELECT e.erasure_number, e.stream_name AS stream, e.asked ->> 'request' AS request, e.requested_by, e.reason, e.erased_at,
       e.events, e.files, e.digest_before, e.digest_after, e.segments
FROM weir_internal.erasure e;
COMMENT ON VIEW weir.erasures IS 'What was erased from streams: events that went before they were truncated. Rows are kept.';
COMMENT ON COLUMN weir.erasures.erasure_number IS '1, 2, 3 ... of the installation.';
COMMENT ON COLUMN weir.erasures.request IS 'The run that erased it, as in weir.certificates.';
COMMENT ON COLUMN weir.erasures.requested_by IS 'Who asked for it.';
COMMENT ON COLUMN weir.erasures.reason IS 'Why, as they say.';
COMMENT ON COLUMN weir.erasures.erased_at IS 'When the files without the events took the place of those with them.';
COMMENT ON COLUMN weir.erasures.events IS 'How many events were erased.';
COMMENT ON COLUMN weir.erasures.files IS 'How many files had them.';
COMMENT ON COLUMN weir.erasures.digest_before IS 'The digest of the commits with these events, before; null if one was not recorded.';
COMMENT ON COLUMN weir.erasures.digest_after IS 'And after.';
COMMENT ON COLUMN weir.erasures.segments IS 'Per segment how many events were erased.';

CREATE OR REPLACE VIEW weir.certificates AS
SELECT r.request_id AS request, r.stream_name AS stream, r.requested_by, r.reason, r.asked_at, r.done_at, r.certified_at,
       coalesce(e.events, 0)::bigint AS events, coalesce(e.files, 0)::bigint AS files, coalesce(e.streams, 0) AS streams,
       CASE WHEN r.certified_at IS NOT NULL THEN 'signed' WHEN r.done_at IS NOT NULL THEN 'waits' ELSE 'not finished' END
           AS state,
       CASE WHEN r.done_at IS NULL THEN ARRAY['its run, which has not ended: run it again']
            WHEN r.certified_at IS NULL THEN coalesce(nullif(ARRAY(SELECT weir_internal.erasure_waits(ARRAY(
                SELECT (o ->> 'stream_id')::bigint FROM jsonb_array_elements(r.searched) o), 1e8)), '{}'),
                ARRAY['a run of upkeep, which signs it']) END AS waits_for,
       r.remains, r.certificate
FROM weir_internal.erasure_request r
LEFT JOIN LATERAL (
    SELECT sum(e.events) AS events, sum(e.files) AS files, count(DISTINCT e.stream_id) AS streams
    FROM weir_internal.erasure e WHERE e.asked ->> 'request' = r.request_id) e ON true;
COMMENT ON VIEW weir.certificates IS 'The erasures that people asked for, each with its signed certificate. Rows are kept.';
COMMENT ON COLUMN weir.certificates.request IS 'The run that erases: DAG, run and task.';
COMMENT ON COLUMN weir.certificates.stream IS 'The stream that was named; what was made of it was searched, too.';
COMMENT ON COLUMN weir.certificates.requested_by IS 'Who asked for it.';
COMMENT ON COLUMN weir.certificates.reason IS 'Why, as they say.';
COMMENT ON COLUMN weir.certificates.asked_at IS 'When the run began to erase.';
COMMENT ON COLUMN weir.certificates.done_at IS 'When the events were out of the files of all streams.';
COMMENT ON COLUMN weir.certificates.certified_at IS 'When it was signed: no file with the events was left in the warehouse.';
COMMENT ON COLUMN weir.certificates.events IS 'How many events were erased, of all streams.';
COMMENT ON COLUMN weir.certificates.files IS 'How many files had them.';
COMMENT ON COLUMN weir.certificates.streams IS 'How many streams had them.';
COMMENT ON COLUMN weir.certificates.state IS 'signed; waits, until the last file with the events is deleted; or not finished, as its run was killed.';
COMMENT ON COLUMN weir.certificates.waits_for IS 'What it waits for: batches that are open, snapshots of tables, a sweep; null once it is signed.';
COMMENT ON COLUMN weir.certificates.remains IS 'Where copies may be that it did not erase, and until when.';
COMMENT ON COLUMN weir.certificates.certificate IS 'The signed certificate as JSON.';

CREATE OR REPLACE VIEW weir.signing_keys AS
SELECT k.key_number, encode(k.public_key, 'base64') AS public_key, k.made_at FROM weir_internal.signing_key k;
COMMENT ON VIEW weir.signing_keys IS 'The public keys with which certificates are checked (docs/erasure.md).';
COMMENT ON COLUMN weir.signing_keys.key_number IS 'As a certificate names it.';
COMMENT ON COLUMN weir.signing_keys.public_key IS 'The 32 bytes of the Ed25519 key, as base64.';
COMMENT ON COLUMN weir.signing_keys.made_at IS 'When it was made.';
