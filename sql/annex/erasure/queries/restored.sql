-- What a restored database knows of erasures.

-- name: known_until -> one
-- Return the last moment of which the database knows.
-- null: until
SELECT to_char(max(m.moment) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS until FROM (
    SELECT clock_time(max(last_clock)) AS moment FROM stream
    UNION ALL SELECT max(updated_at) FROM job_run WHERE job <> 'recover') m

-- name: requests -> many
-- Return those of some requests that are known.
SELECT request_id FROM erasure_request WHERE request_id = ANY(:requests)

-- name: keys -> many PublicKey
-- Return the keys of the installation.
SELECT key_number, public_key FROM signing_key
