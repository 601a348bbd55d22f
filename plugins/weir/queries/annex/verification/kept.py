"""What sweeps keep. Made by `make queries` from sql/annex/verification/queries/kept.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

LET_GO = text(
    """WITH forgotten AS (
    DELETE FROM found_damage d
    WHERE d.kind = 'garbage' AND (CAST(:stream_id AS bigint) IS NULL OR d.stream_id = :stream_id)
    RETURNING d.path
), due AS MATERIALIZED (
    SELECT g.root, g.path FROM garbage g JOIN forgotten f USING (path) WHERE g.root = ''
), named AS MATERIALIZED (
    SELECT s.stream_name, n.number, EXISTS (
        SELECT FROM transaction t
        WHERE t.stream_id = s.stream_id AND t.transaction_number = n.number) AS appended
    FROM (SELECT DISTINCT CAST(substring(path FROM '^(\\d{1,18})/') AS bigint) AS stream_id,
              CAST(substring(path FROM '^\\d+/_weir_tx=(\\d{1,18})/') AS bigint) AS number
          FROM due WHERE root = '' AND path ~ '^\\d{1,18}/(_weir_tx=\\d{1,18}/|$)') n
    JOIN stream s USING (stream_id)
), live AS MATERIALIZED (
    SELECT f.path FROM named n
    JOIN data_file f ON f.stream_name = n.stream_name AND f.transaction_number = n.number
    WHERE n.appended
    UNION ALL
    SELECT f.path FROM data_file f
    WHERE f.stream_name IN (SELECT n.stream_name FROM named n WHERE NOT n.appended)
    UNION ALL
    SELECT a.path FROM due d JOIN adjunct_file a ON a.path = d.path
      AND a.store_id = CAST(substring(d.path FROM '^_weir_adjunct=(\\d{1,18})/') AS bigint)
), judged AS (
    SELECT d.*, d.root = '' AND (d.path IN (SELECT l.path FROM live l)
        OR d.path LIKE '%/' AND EXISTS (SELECT FROM live l WHERE starts_with(l.path, d.path)))
        AS live
    FROM due d
), dropped AS (
    DELETE FROM garbage g USING judged j WHERE j.live AND g.root = '' AND g.path = j.path
), freed AS (
    UPDATE garbage g SET rows = NULL, end_hash = NULL
    FROM judged j WHERE NOT j.live AND g.root = '' AND g.path = j.path
)
SELECT count(*) AS files FROM forgotten"""
)


def let_go(connection: Connection, *, stream_id: int | None) -> int:
    """Let sweeps delete what was kept of a stream (null: of all); forget that what is needed is garbage."""
    result = connection.execute(LET_GO, {"stream_id": stream_id})
    value: int = result.scalar_one()
    return value


FORGET_GARBAGE = text(
    """DELETE FROM found_damage WHERE kind = 'garbage' AND path = ANY(CAST(:paths AS text[]))"""
)


def forget_garbage(connection: Connection, *, paths: Sequence[str]) -> None:
    """Forget the damage of garbage that was deleted."""
    result = connection.execute(FORGET_GARBAGE, {"paths": list(paths)})
    result.close()
