-- Tables of this database as outputs.

-- name: table -> maybe Table
-- Return a relation by its name.
SELECT c.oid, c.relkind IN ('r', 'p') AS is_table
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = :schema AND c.relname = :table

-- name: columns -> many Column
-- Return the columns of a table. `kind`: the name of its type; for a domain, of the type that it is
-- based on. `shown`: the type as a person writes it. `scale`: of a numeric, digits after the point;
-- None: any number of them. `staged_type`: the number of the type in the staging table. `required`:
-- neither nullable nor filled in by a default.
-- null: scale
SELECT a.attname AS name, b.typname AS kind,
    format_type(a.atttypid, a.atttypmod) AS shown,
    CASE WHEN b.typname = 'numeric' AND m.modifier >= 0
         THEN (((m.modifier - 4) & 2047) # 1024) - 1024 END AS scale,
    CASE WHEN b.typtype = 'e' THEN 'text'::regtype ELSE b.oid END::bigint
        AS staged_type,
    m.modifier, b.typtype = 'e' AS is_enum,
    a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required,
    a.attgenerated <> '' OR a.attidentity = 'a' AS generated
FROM pg_attribute a
JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_type b ON b.oid = CASE WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END
CROSS JOIN LATERAL (SELECT CASE WHEN t.typtype = 'd' THEN t.typtypmod
                           ELSE a.atttypmod END AS modifier) m
WHERE a.attrelid = :table AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum

-- name: publish -> one
-- Put staged rows into their tables.
-- type: publish_tables = list[dict[str, Any]]
SELECT weir_internal.publish_tables(CAST(:outputs AS jsonb))

-- name: make_staging -> one
-- Create a staging table, and return the COPY that fills it.
SELECT make_staging(:name, CAST(:columns AS text[]), CAST(:types AS oid[]),
CAST(:modifiers AS integer[]))

-- name: abandoned_staging -> many
-- Return the staging tables of readers that can no longer commit.
SELECT abandoned_staging()

-- name: drop_staging -> none
-- Drop a staging table, if it exists.
SELECT drop_staging(:name)
