"""The functions and views of a database. Made by `make queries` from sql/queries/database/definitions.sql."""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

NUMBERS = text(
    """SELECT kind, name, CAST(CASE kind WHEN 'VIEW' THEN CAST(to_regclass(name) AS oid)
                                ELSE CAST(to_regprocedure(name) AS oid) END AS bigint) AS number
FROM unnest(CAST(:kinds AS text[]), CAST(:names AS text[])) o (kind, name)"""
)


class Number(NamedTuple):
    """A row of `numbers`."""

    kind: str
    name: str
    number: int | None


def numbers(connection: Connection, *, kinds: Sequence[str], names: Sequence[str]) -> list[Number]:
    """Return the oids of functions and views; null for one that is not there."""
    result = connection.execute(NUMBERS, {"kinds": list(kinds), "names": list(names)})
    return [Number._make(row) for row in result]


IS_OF_ANOTHER_ROLE = text(
    """SELECT NOT pg_has_role(proowner, 'USAGE') FROM pg_proc WHERE oid = CAST(:number AS oid)"""
)


def is_of_another_role(connection: Connection, *, number: int) -> bool:
    """Return whether the owner of the schema may not replace a function."""
    result = connection.execute(IS_OF_ANOTHER_ROLE, {"number": number})
    value: bool = result.scalar_one()
    return value


USERS = text(
    """WITH RECURSIVE used (class, number) AS (
    SELECT CAST(CAST(:catalogue AS regclass) AS oid), CAST(:number AS oid)
    UNION
    SELECT CASE WHEN r.oid IS NULL THEN d.classid ELSE 'pg_class'::regclass END,
           coalesce(r.ev_class, d.objid)
    FROM used u
    JOIN pg_depend d ON d.refclassid = u.class AND d.refobjid = u.number AND d.deptype = 'n'
    LEFT JOIN pg_rewrite r ON d.classid = 'pg_rewrite'::regclass AND r.oid = d.objid
) SELECT number FROM used"""
)


def users(connection: Connection, *, catalogue: str, number: int) -> list[int]:
    """Return the oids of an object and of all that use it."""
    result = connection.execute(USERS, {"catalogue": catalogue, "number": number})
    return [row[0] for row in result]


GRANTS = text(
    """SELECT format('GRANT %s ON %s %s TO %s%s', a.privilege_type, CAST(:kind AS text),
              CAST(:name AS text),
              CASE a.grantee WHEN 0 THEN 'PUBLIC'
                             ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM (SELECT relacl AS acl, relowner AS owner FROM pg_class
      WHERE oid = :number AND :kind = 'TABLE'
      UNION ALL
      SELECT proacl, proowner FROM pg_proc WHERE oid = :number AND :kind = 'FUNCTION') o
CROSS JOIN LATERAL aclexplode(o.acl) a WHERE a.grantee <> o.owner
UNION ALL
SELECT format('GRANT %s (%I) ON %s TO %s%s', a.privilege_type, c.attname, CAST(:name AS text),
              CASE a.grantee WHEN 0 THEN 'PUBLIC'
                             ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
              CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)
FROM pg_attribute c CROSS JOIN LATERAL aclexplode(c.attacl) a
WHERE c.attrelid = :number AND :kind = 'TABLE'"""
)


def grants(connection: Connection, *, kind: str, name: str, number: int) -> list[str]:
    """Return the statements that give the grants of an object."""
    result = connection.execute(GRANTS, {"kind": kind, "name": name, "number": number})
    return [row[0] for row in result]


OBSOLETE = text(
    """SELECT string_agg(CAST(CAST(oid AS regprocedure) AS text), ', ') AS obsolete FROM pg_proc
WHERE pronamespace = 'weir_internal'::regnamespace AND oid <> ALL (CAST(:wanted AS oid[]))"""
)


def obsolete(connection: Connection, *, wanted: Sequence[int]) -> str | None:
    """Return the functions of weir_internal that are not wanted."""
    result = connection.execute(OBSOLETE, {"wanted": list(wanted)})
    value: str | None = result.scalar_one()
    return value


CLEARING = text(
    """SELECT format('COMMENT ON COLUMN %s.%I IS NULL', CAST(c.oid AS regclass), a.attname)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0
WHERE (c.relnamespace = 'weir_internal'::regnamespace OR c.oid = ANY (CAST(:views AS oid[])))
  AND c.relkind IN ('r', 'v') AND col_description(c.oid, a.attnum) IS NOT NULL"""
)


def clearing(connection: Connection, *, views: Sequence[int]) -> list[str]:
    """Return the statements that remove the comments on columns of tables and of views."""
    result = connection.execute(CLEARING, {"views": list(views)})
    return [row[0] for row in result]
