-- What the audit asks of certificates.

-- name: signed -> many Signed
-- Return each certificate, the key by which it says that it is signed, and what was erased.
-- row: A certificate, and what it must say.
-- null: public_key
-- type: certificate = dict[str, Any]
-- type: erased = list[list[Any]]
SELECT r.request_id, r.stream_name, r.certificate, (
    SELECT k.public_key FROM signing_key k
    WHERE k.key_number::text = r.certificate ->> 'key_number') AS public_key,
    (SELECT coalesce(jsonb_agg(jsonb_build_array(
            e.erasure_number, e.stream_name, e.events, e.segments)), '[]')
     FROM erasure e WHERE e.asked ->> 'request' = r.request_id) AS erased
FROM erasure_request r WHERE r.certificate IS NOT NULL
ORDER BY r.request_id
