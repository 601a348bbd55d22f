-- Requests that were done.

-- name: done -> maybe Done
-- Return the hash of a request's arguments, and its result.
-- type: result = dict[str, Any]
SELECT arguments, result FROM request
WHERE request_id = :request_id AND operation = :operation AND object = :object

-- name: record -> none
-- Record the result of a request.
INSERT INTO request (request_id, operation, object, arguments, result)
VALUES (:request_id, :operation, :object, :arguments, CAST(:answer AS jsonb))
