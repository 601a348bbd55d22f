-- What an examination tells of what is in the database.

-- name: troubles -> many
-- Return what is wrong now, the worst first.
-- null: action
-- type: given = dict[str, object]
SELECT kind, severity, sentence, advice, action, given FROM weir.troubles ORDER BY severity DESC, since, subject LIMIT 100
