-- Whether rows of garbage name what is needed.

-- fragment: judged
-- What follows `WITH due AS (...)`, rows of garbage: `judged`, the same rows with whether they name
-- what is needed, or a folder with it. The folder of a file has the number of the transaction that
-- wrote it, which an index has, or of a compaction: then all files of the stream are looked at.
named AS MATERIALIZED (
    SELECT s.stream_name, n.number, EXISTS (
        SELECT FROM transaction t
        WHERE t.stream_id = s.stream_id AND t.transaction_number = n.number) AS appended
    FROM (SELECT DISTINCT CAST(substring(path FROM '^(\d{1,18})/') AS bigint) AS stream_id,
              CAST(substring(path FROM '^\d+/_weir_tx=(\d{1,18})/') AS bigint) AS number
          FROM due WHERE root = '' AND path ~ '^\d{1,18}/(_weir_tx=\d{1,18}/|$)') n
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
      AND a.store_id = CAST(substring(d.path FROM '^_weir_adjunct=(\d{1,18})/') AS bigint)
), judged AS (
    SELECT d.*, d.root = '' AND (d.path IN (SELECT l.path FROM live l)
        OR d.path LIKE '%/' AND EXISTS (SELECT FROM live l WHERE starts_with(l.path, d.path)))
        AS live
    FROM due d
)
