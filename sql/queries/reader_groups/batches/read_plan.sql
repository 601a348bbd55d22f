-- What batches read.
-- import: from weir.model.schema import Field

-- name: streams -> many GroupColumns
-- Return the streams of a group by id, also the deleted ones, each with its newest columns.
-- type: fields = list[Field]
SELECT s.stream_id, s.stream_name AS name, coalesce(c.fields, '[]') AS fields
FROM reader_group g JOIN reader_group_stream gs USING (group_id) JOIN stream s USING (stream_id)
LEFT JOIN LATERAL (
    SELECT o.fields FROM stream_schema o WHERE o.stream_id = s.stream_id
    ORDER BY o.version DESC LIMIT 1) c ON true
WHERE g.name = :group ORDER BY s.stream_id
