"""What the audit asks of streams: that commits, files and segments have every offset once."""

from typing import Any

# How a segment is written, and the id that a name means.
SEGMENT = "({0} & 4294967295)::text || '.' || ({0} >> 32)::text"
ENTRIES = """(
            SELECT (split_part(e.key, '.', 2)::bigint << 32) | split_part(e.key, '.', 1)::bigint
                       AS segment_id,
                   CASE WHEN jsonb_typeof(e.value) = 'number' THEN e.value::bigint END AS past
            FROM jsonb_each({0}) e)"""


def covered(first: str, past: str, of: str = "0") -> str:
    """Return SQL that sums over ranges: a number for each end, less one for each beginning.

    It equals `once(a, b)` if the ranges cover [a, b) without gap or overlap, and otherwise only by
    a collision of hashes. Ends and beginnings cancel at inner offsets, so nothing is sorted. `of`:
    whose ranges these are, if ranges of many are summed together.
    """
    return f"(sum(hashint8extended({past}, {of})) - sum(hashint8extended({first}, {of})))"


def once(first: str, past: str, of: str = "0") -> str:
    """Return SQL for the number that `covered` must come to for ranges between two offsets."""
    return f"(hashint8extended({past}, {of})::numeric - hashint8extended({first}, {of}))"


# Per segment where it ends, and up to which offset the head has passed it: an entry of the head
# says that of its own segment; of others, it is all if the oldest entry at the same key is newer.
KEPT = f"""seg AS MATERIALIZED (
        SELECT g.stream_id, g.segment_id, g.key_low, g.key_high,
               coalesce(t.tail_offset, g.events) AS ends
        FROM segment g LEFT JOIN segment_tail t USING (stream_id, segment_id)
    ), head AS MATERIALIZED (
        SELECT s.stream_id, c.segment_id, c.past, g.key_low, g.key_high
        FROM stream s CROSS JOIN LATERAL {ENTRIES.format("s.head")} c
        JOIN segment g ON g.stream_id = s.stream_id AND g.segment_id = c.segment_id
    ), owner AS (
        SELECT g.stream_id, g.segment_id, min(o.segment_id) AS segment
        FROM (SELECT stream_id, max(segment_id) AS segment_id FROM head GROUP BY stream_id) n
        JOIN seg g ON g.stream_id = n.stream_id AND g.segment_id < n.segment_id
        JOIN head o ON o.stream_id = g.stream_id AND o.key_low <= g.key_low
            AND g.key_low < o.key_high
        GROUP BY g.stream_id, g.segment_id
    ), kept AS MATERIALIZED (
        SELECT g.stream_id, g.segment_id, g.ends,
               CASE WHEN h.segment_id IS NOT NULL THEN coalesce(h.past, 0)
                    WHEN o.segment > g.segment_id THEN g.ends ELSE 0 END AS kept_from
        FROM seg g LEFT JOIN head h USING (stream_id, segment_id)
        LEFT JOIN owner o USING (stream_id, segment_id)
    )"""  # noqa: S608 - constants


def passed(points: str, wanted: str) -> str:
    """Return WITH clauses that say up to which offset each cut of groups has passed segments.

    A segment may be pruned: then the order of the ids says it, or nothing. `points`: rows of
    `group_id`, `stream_id`, `stay`, `side` and `cut`; `wanted`: the segments. After `KEPT`.
    """
    return f"""point AS MATERIALIZED (
        {points}
    ), entry AS MATERIALIZED (
        SELECT p.group_id, p.stream_id, p.stay, p.side, c.segment_id, c.past, g.key_low, g.key_high
        FROM point p CROSS JOIN LATERAL {ENTRIES.format("p.cut")} c
        LEFT JOIN seg g USING (stream_id, segment_id)
    ), side AS MATERIALIZED (
        SELECT group_id, stream_id, stay, side, min(segment_id) AS first, max(segment_id) AS last,
               bool_and(key_low IS NOT NULL) AS known
        FROM entry GROUP BY group_id, stream_id, stay, side
    ), wanted AS MATERIALIZED (
        {wanted}
    ), passed AS MATERIALIZED (
        SELECT i.group_id, i.stream_id, i.stay, i.side, r.segment_id,
               CASE WHEN e.segment_id IS NOT NULL THEN coalesce(e.past, 0)
                    WHEN r.segment_id < i.first THEN 9223372036854775807
                    WHEN r.segment_id > i.last THEN 0
                    WHEN i.known AND g.key_low IS NOT NULL THEN (
                        SELECT CASE WHEN min(o.segment_id) > r.segment_id
                            THEN 9223372036854775807 ELSE 0 END
                        FROM entry o WHERE o.group_id = i.group_id AND o.stream_id = i.stream_id
                          AND o.stay = i.stay AND o.side = i.side
                          AND o.key_low <= g.key_low AND g.key_low < o.key_high) END AS past
        FROM side i JOIN wanted r USING (stream_id)
        LEFT JOIN seg g USING (stream_id, segment_id)
        LEFT JOIN entry e USING (group_id, stream_id, stay, side, segment_id)
    )"""  # noqa: S608 - constants


# From which offset on a segment is looked at: all of it, or what came after the last proven clock,
# and always its end.
_ALL = "looked AS (SELECT k.*, 0::bigint AS since FROM kept k)"
_FRESH = """proven AS MATERIALIZED (
        SELECT s.stream_id, coalesce(a.clock, -1) AS clock, s.last_clock
        FROM stream s LEFT JOIN audited_stream a USING (stream_id) WHERE s.state <> 'deleted'
    ), fresh AS (
        SELECT i.stream_id, i.segment_id, min(i.start_offset) AS since
        FROM proven p CROSS JOIN LATERAL (
            SELECT t.stream_id, t.segment_id, t.start_offset FROM time_index t
            WHERE t.stream_id = p.stream_id AND t.clock > p.clock
            UNION ALL
            SELECT c.stream_id, c.segment_id, c.start_offset FROM packed_commits c
            WHERE c.stream_id = p.stream_id AND c.last_clock > p.clock) i
        WHERE p.last_clock > p.clock GROUP BY i.stream_id, i.segment_id
    ), looked AS MATERIALIZED (
        SELECT k.*, coalesce(f.since, k.ends) AS since
        FROM kept k LEFT JOIN fresh f USING (stream_id, segment_id)
    )"""
_COMMITS: dict[str, Any] = {
    "all": ["(SELECT *, start_offset + events AS past FROM time_index)", "packed_commits"],
    "of": """(SELECT start_offset, start_offset + events AS past FROM time_index
            WHERE stream_id = {0}.stream_id AND segment_id = {0}.segment_id AND start_offset >= {1}
            UNION ALL SELECT start_offset, past FROM packed_commits
            WHERE stream_id = {0}.stream_id AND segment_id = {0}.segment_id
              AND start_offset >= {1})""",
    "before": """greatest(
            (SELECT max(b.start_offset) FROM time_index b WHERE b.stream_id = {0}.stream_id
             AND b.segment_id = {0}.segment_id AND b.start_offset <= {0}.since),
            (SELECT max(b.start_offset) FROM packed_commits b WHERE b.stream_id = {0}.stream_id
             AND b.segment_id = {0}.segment_id AND b.start_offset <= {0}.since))""",
}
_FILES: dict[str, Any] = {
    "all": ["(SELECT *, start_offset + events AS past FROM data_file)"],
    "of": """(SELECT start_offset, start_offset + events AS past FROM data_file
            WHERE stream_id = {0}.stream_id AND segment_id = {0}.segment_id
              AND start_offset >= {1})""",
    "before": """(SELECT max(b.start_offset) FROM data_file b WHERE b.stream_id = {0}.stream_id
             AND b.segment_id = {0}.segment_id AND b.start_offset <= {0}.since)""",
}


_OF = "hashint8extended({0}.segment_id, {0}.stream_id)"


def _held(source: dict[str, Any], word: str) -> str:
    """Return a WITH clause that says of all segments together whether their rows have each offset
    once: by one sum over all rows, without a group for each segment."""
    sums = " UNION ALL ".join(
        f"SELECT {covered('r.start_offset', 'r.past', _OF.format('r'))} AS whole FROM {one} r"  # noqa: S608
        for one in source["all"]
    )
    firsts = " UNION ALL ".join(
        f"""(SELECT start_offset, past FROM {one} r WHERE r.stream_id = k.stream_id
            AND r.segment_id = k.segment_id ORDER BY start_offset LIMIT 1)"""  # noqa: S608
        for one in source["all"]
    )
    return f"""held AS MATERIALIZED (
        SELECT coalesce(bool_and(CASE WHEN f.start_offset IS NULL THEN k.ends <= k.kept_from
                ELSE (f.start_offset <= k.kept_from OR k.ends <= k.kept_from)
                     AND NOT ('{word}' = 'file' AND f.past <= k.kept_from) END), true)
            AND coalesce(sum({once("f.start_offset", "k.ends", _OF.format("k"))}), 0)
                = coalesce((SELECT sum(whole) FROM ({sums}) r), 0) AS held
        FROM kept k LEFT JOIN LATERAL (
            SELECT * FROM ({firsts}) o ORDER BY start_offset LIMIT 1) f ON true
    )"""  # noqa: S608 - constants


def _covers(source: dict[str, Any], word: str, everything: bool) -> str:
    """Return the statement that finds segments whose rows do not have each offset from the head to
    the end once."""
    begin = f"coalesce({source['before'].format('l')}, 0)"
    parts = source["all"] if everything else [
        f"""(SELECT l.stream_id, l.segment_id, r.* FROM looked l
            CROSS JOIN LATERAL {source["of"].format("l", begin)} r)"""  # noqa: S608 - constants
    ]  # fmt: skip
    # A table by itself, so that several processes read it.
    part = """SELECT stream_id, segment_id, min(start_offset) AS lo, max(past) AS hi,
                   min(past) AS first_past, {0} AS whole
            FROM {1} r GROUP BY stream_id, segment_id"""
    rows = " UNION ALL ".join(part.format(covered("start_offset", "past"), one) for one in parts)
    first = f"{_held(source, word)}, {_ALL}" if everything else _FRESH
    return f"""WITH {KEPT}, {first}, have AS (
        SELECT stream_id, segment_id, min(lo) AS lo, max(hi) AS hi, min(first_past) AS first_past,
               sum(whole) AS whole
        FROM ({rows}) r GROUP BY stream_id, segment_id
    ), wrong AS (
        SELECT l.*, h.lo, h.hi, h.first_past, h.whole <> {once("h.lo", "h.hi")} AS broken
        FROM looked l LEFT JOIN have h USING (stream_id, segment_id)
        WHERE {"NOT (SELECT held FROM held) AND" if everything else ""}
            CASE WHEN h.lo IS NULL THEN l.ends > l.kept_from
            ELSE h.whole <> {once("h.lo", "h.hi")} OR h.hi <> l.ends
                 OR h.lo > greatest(l.kept_from, l.since) AND l.ends > l.kept_from
                 OR '{word}' = 'file' AND h.first_past <= l.kept_from END
        LIMIT 100
    )
    SELECT CASE WHEN w.lo IS NULL THEN '{word}_missing'
                WHEN w.broken AND d.before < d.start_offset THEN '{word}_missing'
                WHEN w.broken THEN '{word}_twice'
                WHEN w.hi > w.ends THEN '{word}_beyond_tail'
                WHEN w.hi < w.ends THEN '{word}_missing'
                WHEN w.lo > greatest(w.kept_from, w.since) THEN '{word}_missing'
                ELSE 'file_below_head' END AS kind,
           s.stream_name AS stream, NULL AS reader_group, {SEGMENT.format("w.segment_id")}
               AS segment,
           CASE WHEN w.lo IS NULL THEN greatest(w.kept_from, least(w.since, w.ends - 1))
                WHEN w.broken THEN least(d.before, d.start_offset)
                WHEN w.hi <> w.ends THEN least(w.hi, w.ends)
                WHEN w.lo > greatest(w.kept_from, w.since) THEN greatest(w.kept_from, w.since)
                ELSE w.lo END AS a,
           CASE WHEN w.lo IS NULL THEN w.ends
                WHEN w.broken THEN greatest(d.before, d.start_offset)
                WHEN w.hi <> w.ends THEN greatest(w.hi, w.ends)
                WHEN w.lo > greatest(w.kept_from, w.since) THEN w.lo
                ELSE w.first_past END AS b, NULL AS name
    FROM wrong w JOIN stream s USING (stream_id)
    LEFT JOIN LATERAL (
        SELECT * FROM (SELECT r.start_offset, lag(r.past) OVER (ORDER BY r.start_offset) AS before
                       FROM {source["of"].format("w", "w.lo")} r) r
        WHERE r.before <> r.start_offset ORDER BY r.start_offset LIMIT 1) d
            ON w.broken"""  # noqa: S608


# An append is whole if its entries have as many events as it says, under its clock. Sums that are
# weighted by the append and its clock are equal then, and else hardly ever; so nothing is joined.
# Before the last truncation entries may be pruned.
_PACKED = """(SELECT c.stream_id, u.number AS transaction_number, u.clock,
               coalesce(u.next, c.past) - u.first AS events
        FROM {0} CROSS JOIN LATERAL (
            SELECT n.*, lead(n.first) OVER (ORDER BY n.first) AS next
            FROM unnest(c.offsets, c.clocks, c.transaction_numbers)
                AS n (first, clock, number)) u)"""
_ENTRY = f"""(SELECT t.stream_id, t.transaction_number, t.clock, t.events FROM {{0}}
        UNION ALL SELECT * FROM {_PACKED.format("{1}")} c)"""  # noqa: S608 - constants
_OF_ONE = _ENTRY.format(
    "time_index t WHERE t.stream_id = w.stream_id",
    "(SELECT * FROM packed_commits p WHERE p.stream_id = w.stream_id) c",
)
_WEIGHT = """sum({0}.events) AS events, sum(
            (hashint8extended({0}.transaction_number, {0}.clock) & 16777215) * {0}.events)
                AS weight"""
_FROM = """truncated AS NOT MATERIALIZED (
        SELECT s.stream_id, greatest(coalesce(max(t.clock), -1), {0}) AS clock
        FROM stream s LEFT JOIN truncation t USING (stream_id) {1}
        WHERE s.state <> 'deleted' {2} GROUP BY s.stream_id)"""


_WEIGHT_OF_ALL = """sum((hashint8extended({0}.transaction_number, hashint8extended(
            {0}.clock, {0}.stream_id)) & 2147483647) * {0}.events)"""


def _whole(everything: bool) -> str:
    held = ""
    if everything:
        begin = _FROM.format("-1", "", "")
        sums = " UNION ALL ".join(
            f"""SELECT b.stream_id, {_WEIGHT.format("e")}
            FROM {one} e JOIN truncated b ON b.stream_id = e.stream_id
            WHERE e.clock > b.clock GROUP BY b.stream_id"""  # noqa: S608 - constants
            for one in ("time_index", _PACKED.format("packed_commits c"))
        )
        append = """transaction x JOIN truncated b ON b.stream_id = x.stream_id
            WHERE x.state = 'committed' AND x.clock > b.clock"""
        of_all = " UNION ALL ".join(
            f"""SELECT {_WEIGHT_OF_ALL.format("e")} AS weight
            FROM {one} e JOIN truncated b ON b.stream_id = e.stream_id WHERE e.clock > b.clock"""  # noqa: S608
            for one in ("time_index", _PACKED.format("packed_commits c"))
        )
        held = f"""held AS MATERIALIZED (
            SELECT coalesce((SELECT sum(weight) FROM ({of_all}) e), 0)
                 = coalesce((SELECT {_WEIGHT_OF_ALL.format("x")} FROM {append}), 0) AS held), """  # noqa: S608
    else:
        begin = _FROM.format(
            "coalesce(max(a.clock), -1)", "LEFT JOIN audited_stream a USING (stream_id)",
            "AND s.last_clock > coalesce(a.clock, -1)",
        )  # fmt: skip
        of = _ENTRY.format(
            "time_index t WHERE t.stream_id = b.stream_id AND t.clock > b.clock",
            """(SELECT * FROM packed_commits p
                WHERE p.stream_id = b.stream_id AND p.last_clock > b.clock) c""",
        )
        sums = f"""SELECT b.stream_id, {_WEIGHT.format("e")}
            FROM truncated b CROSS JOIN LATERAL {of} e
            WHERE e.clock > b.clock GROUP BY b.stream_id"""  # noqa: S608 - constants
        append = """truncated b JOIN stream s USING (stream_id) CROSS JOIN LATERAL (
            SELECT * FROM transaction x WHERE x.stream_name = s.stream_name
              AND ('epoch'::timestamp + x.clock * interval '1 microsecond') AT TIME ZONE 'UTC'
                  >= ('epoch'::timestamp + (b.clock - 1) * interval '1 microsecond')
                     AT TIME ZONE 'UTC'
              AND x.clock > b.clock OFFSET 0) x
            WHERE x.stream_id = b.stream_id AND x.state = 'committed'"""
    return f"""WITH {begin}, {held}entry AS (
        SELECT stream_id, sum(events) AS events, sum(weight) AS weight
        FROM ({sums}) e GROUP BY stream_id
    ), append AS (
        SELECT b.stream_id, {_WEIGHT.format("x")} FROM {append} GROUP BY b.stream_id
    ), wrong AS (
        SELECT b.stream_id, b.clock FROM truncated b LEFT JOIN entry e USING (stream_id)
        LEFT JOIN append x USING (stream_id)
        WHERE {"NOT (SELECT held FROM held) AND" if held else ""}
            (coalesce(e.weight, 0) <> coalesce(x.weight, 0)
             OR coalesce(e.events, 0) <> coalesce(x.events, 0)) LIMIT 20
    )
    SELECT CASE WHEN d.recorded IS NULL THEN 'commit_unknown' ELSE 'commit_not_whole' END AS kind,
           s.stream_name AS stream, NULL AS reader_group, NULL AS segment, d.found AS a,
           d.recorded AS b, d.transaction_number::text AS name
    FROM wrong w JOIN stream s USING (stream_id) CROSS JOIN LATERAL (
        SELECT transaction_number, coalesce(e.events, 0) AS found, x.events AS recorded
        FROM (SELECT transaction_number, clock, sum(events) AS events
              FROM {_OF_ONE} e
              WHERE e.clock > w.clock GROUP BY transaction_number, clock) e
        FULL JOIN (SELECT transaction_number, clock, events FROM transaction
                   WHERE stream_id = w.stream_id AND state = 'committed' AND clock > w.clock) x
            USING (transaction_number, clock)
        WHERE coalesce(e.events, 0) <> coalesce(x.events, -1) ORDER BY 1 LIMIT 5) d"""  # noqa: S608


# In a segment, later offsets have later clocks; and no append is later than its stream. Of what is
# proven this is not asked again: it is the only question for which all rows would be sorted.
ORDER = f"""WITH proven AS MATERIALIZED (
        SELECT s.stream_id, s.stream_name, s.last_clock, coalesce(a.clock, -1) AS clock
        FROM stream s LEFT JOIN audited_stream a USING (stream_id)
        WHERE s.state <> 'deleted' AND s.last_clock > coalesce(a.clock, -1))
    SELECT 'clock_not_later' AS kind, w.stream_name AS stream, NULL AS reader_group,
           {SEGMENT.format("w.segment_id")} AS segment, w.start_offset AS a, w.clock AS b,
           NULL AS name
    FROM (SELECT t.*, p.stream_name, p.last_clock, lag(t.clock) OVER (
              PARTITION BY t.stream_id, t.segment_id ORDER BY t.start_offset) AS before
          FROM proven p CROSS JOIN LATERAL (
              SELECT i.stream_id, i.segment_id, i.start_offset, i.clock FROM time_index i
              WHERE i.stream_id = p.stream_id AND i.clock > p.clock OFFSET 0) t) w
    WHERE w.clock <= w.before OR w.clock > w.last_clock LIMIT 20"""  # noqa: S608

TILES = f"""SELECT 'keys_without_segment' AS kind, s.stream_name AS stream, NULL AS reader_group,
           {SEGMENT.format("w.segment_id")} AS segment, NULL::bigint AS a, NULL::bigint AS b,
           coalesce(w.before, 0)::text AS name
    FROM (SELECT t.stream_id, t.segment_id, g.key_low, g.key_high,
                 lag(g.key_high) OVER ends AS before, lead(g.key_low) OVER ends AS after
          FROM segment_tail t JOIN segment g USING (stream_id, segment_id)
          WINDOW ends AS (PARTITION BY t.stream_id ORDER BY g.key_low)) w
    JOIN stream s USING (stream_id)
    WHERE w.key_low <> coalesce(w.before, 0) OR w.after IS NULL
        AND w.key_high <> 1 LIMIT 20"""  # noqa: S608

# Rows by which an audit would look at less.
STATES = """SELECT 'stream_kept' AS kind, s.stream_name AS stream, NULL AS reader_group,
           NULL AS segment, count(*) AS a, NULL::bigint AS b, NULL AS name
    FROM stream s JOIN segment g USING (stream_id) WHERE s.state = 'deleted' GROUP BY s.stream_name
    UNION ALL
    SELECT 'proven_beyond', s.stream_name, NULL, NULL, a.clock, s.last_clock, NULL
    FROM audited_stream a JOIN stream s USING (stream_id)
    WHERE s.state <> 'deleted' AND a.clock > s.last_clock LIMIT 20"""


# What counts as garbage may be deleted: a file, or a folder, of a stream, a store or an output. A
# file lies in a folder of the stream's.
GARBAGE = """WITH file AS (
        SELECT s.stream_name, g.path FROM data_file f JOIN stream s USING (stream_id)
        JOIN garbage g ON g.root = '' AND g.path = f.path
        UNION ALL
        SELECT s.stream_name, g.path
        FROM (SELECT stream_id, regexp_replace(path, '[^/]+$', '') AS folder
              FROM data_file GROUP BY 1, 2) f
        JOIN stream s USING (stream_id)
        JOIN garbage g ON g.root = '' AND starts_with(f.folder, g.path)
            AND right(g.path, 1) = '/' AND split_part(g.path, '/', 1) = split_part(f.folder, '/', 1)
        UNION ALL
        SELECT o.name, g.path FROM adjunct_file a JOIN adjunct_store o USING (store_id)
        JOIN garbage g ON g.root = '' AND (g.path = a.path
            OR right(g.path, 1) = '/' AND starts_with(a.path, g.path))
        UNION ALL
        SELECT o.group_name, g.path FROM parquet_output o
        JOIN garbage g ON g.root = o.root AND g.path = o.path
    )
    SELECT 'garbage_is_needed' AS kind, f.stream_name AS stream, NULL AS reader_group,
           NULL AS segment, NULL::bigint AS a, NULL::bigint AS b, f.path AS name
    FROM file f GROUP BY f.stream_name, f.path LIMIT 20"""


def of_streams(everything: bool) -> list[str]:
    """Return the statements about streams; with `everything`, about all that they have."""
    return [
        _covers(_COMMITS, "commit", everything),
        _covers(_FILES, "file", everything),
        _whole(everything),
        *([GARBAGE] if everything else []),
    ]
