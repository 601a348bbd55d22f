-- What the pages show of certificates.

-- name: certificates -> many CertificateShown
-- Return the erasures that people asked for, the newest first.
-- row: An erasure, and its certificate.
-- null: certified_at, waits_for, certificate
-- type: certificate = dict[str, Any]
-- type: waits_for = list[str]
SELECT asked_at, stream, request, requested_by, reason, events, streams, state, waits_for, certified_at, certificate
FROM certificates
WHERE request IN (
    SELECT r.request_id FROM erasure_request r WHERE (:stream = '' OR r.stream_name = :stream)
    ORDER BY r.asked_at DESC, r.request_id LIMIT :most OFFSET CAST(:passed AS bigint))
ORDER BY asked_at DESC, request
