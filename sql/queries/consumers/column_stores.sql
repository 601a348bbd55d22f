-- What changes of columns mean for adjunct stores.

-- name: follow -> none
-- Change a definition. A key that is the same column makes no version of another definition one of
-- other keys.
-- null: :outdated
UPDATE adjunct_definition SET key = CASE WHEN key = :was THEN :key ELSE key END,
    value = CASE WHEN definition = :definition THEN :value ELSE value END,
    delete_when = CASE WHEN definition = :definition THEN :delete_when ELSE delete_when END,
    outdated = CASE WHEN definition = :definition THEN coalesce(outdated, :outdated) ELSE outdated END
WHERE store_id = :store_id

-- name: stores_of -> many
-- Return the adjunct stores of a stream.
SELECT name FROM adjunct_store WHERE stream_id = :stream_id ORDER BY name
