"""A database as its catalogue describes it: what two databases of one schema have in common."""

import psycopg2

# The order of columns is left out, because it differs where a migration added one. So are the names
# of NOT NULL constraints, which Postgres 18 keeps when a column is renamed.
_QUESTIONS = """
SELECT format('schema %s: %s, %s', n.nspname, n.nspacl, obj_description(n.oid, 'pg_namespace'))
FROM pg_namespace n WHERE n.nspname LIKE 'weir%'
UNION ALL
SELECT format('relation %s: %s, %s, %s, %s, %s', c.oid::regclass, c.relkind, c.reloptions,
              pg_get_userbyid(c.relowner), obj_description(c.oid, 'pg_class'), c.grants)
FROM (SELECT *, array(SELECT (a.grantee::regrole, a.privilege_type, a.is_grantable)::text
                      FROM aclexplode(o.relacl) a ORDER BY 1) AS grants FROM pg_class o) c
WHERE c.relnamespace::regnamespace::text LIKE 'weir%' AND c.relkind IN ('r', 'v', 'S')
UNION ALL
SELECT format('column %s.%s: %s, %s, %s, %s, %s, %s, %s, %s', c.oid::regclass, a.attname,
              format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
              pg_get_expr(d.adbin, d.adrelid), a.attstattarget, a.attacl,
              col_description(c.oid, a.attnum))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace::regnamespace::text LIKE 'weir%' AND c.relkind IN ('r', 'v')
UNION ALL
SELECT format('constraint %s of %s: %s', o.conname, o.conrelid::regclass,
              pg_get_constraintdef(o.oid))
FROM pg_constraint o WHERE o.connamespace::regnamespace::text LIKE 'weir%' AND o.contype <> 'n'
UNION ALL
SELECT format('index %s', indexdef) FROM pg_indexes WHERE schemaname LIKE 'weir%'
UNION ALL
SELECT format('view %s: %s', oid::regclass, pg_get_viewdef(oid)) FROM pg_class
WHERE relnamespace::regnamespace::text LIKE 'weir%' AND relkind = 'v'
UNION ALL
SELECT format('function %s: %s, %s, %s, %s', f.oid::regprocedure, pg_get_functiondef(f.oid),
              pg_get_userbyid(f.proowner), obj_description(f.oid, 'pg_proc'),
              array(SELECT format('%s %s', a.grantee::regrole, a.is_grantable)
                    FROM aclexplode(f.proacl) a ORDER BY 1))
FROM pg_proc f WHERE f.pronamespace::regnamespace::text LIKE 'weir%'
UNION ALL
SELECT format('trigger %s: %s', tgname, pg_get_triggerdef(oid)) FROM pg_trigger
WHERE NOT tgisinternal AND tgrelid::regclass::text LIKE 'weir%'
ORDER BY 1
"""


def describe(dsn: str) -> list[str]:
    """Return a line per object of Weir's schemas, with its columns, constraints, grants and
    comment."""
    connection = psycopg2.connect(dsn, options="-c search_path=")
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(_QUESTIONS)
            # These are made for each stream.
            return [line for (line,) in cursor if "ducklake_inlined_delete_" not in line]
    finally:
        connection.close()


def differences(one: list[str], other: list[str]) -> list[str]:
    """Return what is in one of two descriptions only; nothing if they are equal."""
    here, there = set(one), set(other)
    return [f"- {line}" for line in one if line not in there] + [
        f"+ {line}" for line in other if line not in here
    ]
