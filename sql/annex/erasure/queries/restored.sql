-- What a restored database knows of erasures.

-- name: known_until -> one
-- Return the last moment of which the database knows, by what nobody does in a restored one before its
-- recovery: streams may be made there, and appends open, but none commits.
-- null: until
SELECT to_char(greatest(
    (SELECT max(opened_at) FROM transaction WHERE state = 'committed'),
    (SELECT max(greatest(asked_at, done_at)) FROM erasure_request),
    (SELECT swept_at FROM installation)) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS until

-- name: requests -> many
-- Return those of some requests that are known.
SELECT request_id FROM erasure_request WHERE request_id = ANY(:requests)

-- name: keys -> many PublicKey
-- Return the keys of the installation.
SELECT key_number, public_key FROM signing_key
