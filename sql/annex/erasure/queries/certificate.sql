-- What the certificate of an erasure says, and the key that signs it.

-- name: document -> one
-- Return the document of a request, without a signature.
-- type: document = dict[str, Any]
SELECT jsonb_build_object(
    'certificate', 1,
    'installation', (SELECT i.installation_id FROM installation i),
    'request', r.request_id, 'stream', r.stream_name, 'requested_by', r.requested_by,
    'reason', r.reason, 'asked', r.asked,
    'asked_at', to_char(r.asked_at AT TIME ZONE 'UTC', f.iso),
    'done_at', to_char(r.done_at AT TIME ZONE 'UTC', f.iso),
    'signed_at', to_char(clock_timestamp() AT TIME ZONE 'UTC', f.iso),
    'searched', r.searched, 'stores', r.stores,
    'outputs', (SELECT coalesce(jsonb_object_agg(o.key, (
            SELECT sum(n.value::bigint) FROM jsonb_each_text(o.value) n)), '{}')
        FROM jsonb_each(r.outputs) o), 'remains', r.remains,
    'erased', (SELECT coalesce(jsonb_agg(jsonb_build_object(
            'erasure', e.erasure_number, 'stream', e.stream_name,
            'erased_at', to_char(e.erased_at AT TIME ZONE 'UTC', f.iso), 'events', e.events,
            'files', e.files, 'segments', e.segments,
            'digest_before', e.digest_before::text, 'digest_after', e.digest_after::text)
        ORDER BY e.erasure_number), '[]')
        FROM erasure e WHERE e.asked ->> 'request' = r.request_id)) AS document
FROM erasure_request r CROSS JOIN (VALUES ('YYYY-MM-DD"T"HH24:MI:SS"Z"')) AS f (iso)
WHERE r.request_id = :id

-- name: waiting -> many
-- Return the requests that are done and have no certificate yet, with the streams they searched.
SELECT request_id, streams FROM certificates_to_sign()

-- name: is_unfounded -> one
-- Return whether the record of a request is not what the compactions and holes say.
SELECT erasure_is_unfounded(:id)

-- name: may_sign -> one
-- Return whether this login may sign.
SELECT has_column_privilege('signing_key', 'private_key', 'SELECT')

-- name: newest_key -> maybe
-- Return the newest key of the installation.
SELECT key_number, private_key FROM signing_key ORDER BY key_number DESC LIMIT 1

-- name: add_key -> none
-- Record the first key of the installation, unless somebody else has.
INSERT INTO signing_key (public_key, private_key) VALUES (:public, :private)
ON CONFLICT (key_number) DO NOTHING

-- name: sign -> none
-- Record the certificate of a request.
SELECT sign_erasure(:id, CAST(:certificate AS jsonb))

-- name: waits_for -> many
-- Return what still keeps files with erased events of some streams.
SELECT * FROM erasure_waits(CAST(:streams AS bigint[]), :grace)
