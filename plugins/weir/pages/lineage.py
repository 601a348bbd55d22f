"""Lineage as a graph: what a stream, a group, a store, a run or a row was made of, and what was
made of it."""

from collections.abc import Callable, Iterable
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from weir.database.refusals import sqlstate
from weir.database.time_limit import CANCELLED, limit_statements
from weir.errors import InvalidInput, NotFound
from weir.pages.answering import Asked, Tagged, rows

router = APIRouter(route_class=Tagged, tags=["lineage"])

MOST = 60  # nodes of a graph
PATIENCE = 2.0  # seconds, for the exact lineage of a run or a row
Node = tuple[str, str]  # kind, name

# Who reads streams, what groups write, who joins stores: from the settings, and the newest commits.
_DOWN = """
SELECT 'stream' AS kind, s.stream_name AS name,
    CASE WHEN a.store_id IS NULL THEN 'group' ELSE 'store' END AS next_kind, g.name AS next_name
FROM weir_internal.stream s JOIN weir_internal.reader_group_stream gs USING (stream_id)
JOIN weir_internal.reader_group g USING (group_id)
LEFT JOIN weir_internal.adjunct_store a ON a.group_id = g.group_id
WHERE s.stream_name = ANY(:streams) AND s.state <> 'deleted'
UNION ALL
SELECT 'group', p.name, w.kind, w.name
FROM unnest(CAST(:groups AS text[])) AS p (name)
CROSS JOIN LATERAL (
    SELECT DISTINCT o ->> 'kind' AS kind,
        coalesce(s.stream_name, o ->> 'root', o ->> 'output') AS name
    FROM (SELECT b.outputs FROM weir.batches b
          WHERE b.reader_group = p.name AND b.state = 'committed'
          ORDER BY b.committed_at DESC LIMIT 100) b
    CROSS JOIN LATERAL jsonb_array_elements(b.outputs) o
    LEFT JOIN weir_internal.stream s
        ON o ->> 'kind' = 'stream' AND s.stream_id = (o ->> 'stream_id')::bigint) w
WHERE w.name IS NOT NULL
UNION ALL
SELECT 'store', a.name, 'group', g.name
FROM weir_internal.adjunct_store a
CROSS JOIN LATERAL (
    SELECT DISTINCT n.group_id FROM (
        SELECT p.group_id FROM weir_internal.adjunct_pin p WHERE p.store_id = a.store_id
        ORDER BY p.version DESC LIMIT 100) n) p
JOIN weir_internal.reader_group g ON g.group_id = p.group_id
WHERE a.name = ANY(:stores)
ORDER BY 2, 3, 4 LIMIT 1000"""
_UP = """
SELECT 'stream' AS kind, p.name AS name, w.kind AS next_kind, w.name AS next_name
FROM unnest(CAST(:streams AS text[])) AS p (name)
CROSS JOIN LATERAL (
    SELECT DISTINCT CASE WHEN g.name IS NULL THEN 'writer' ELSE 'group' END AS kind,
        coalesce(g.name, regexp_replace(
            t.source, '\\A([^/]+)/[^/]+/([^/]+?)(/[0-9]+)?\\Z', '\\1 · \\2')) AS name
    FROM (SELECT t.source, CASE WHEN starts_with(t.writer_id, 'group ')
              AND t.batch_id ~ '\\A[0-9]{1,18}[.][0-9]' THEN split_part(t.batch_id, '.', 1)::bigint
          END AS group_id
          FROM weir.transactions t WHERE t.stream = p.name AND t.state = 'committed'
          ORDER BY t.clock DESC LIMIT 100) t
    LEFT JOIN weir_internal.reader_group g USING (group_id)) w
WHERE w.name <> ''
UNION ALL
SELECT 'group', g.name, 'stream', s.stream_name
FROM weir_internal.reader_group g JOIN weir_internal.reader_group_stream gs USING (group_id)
JOIN weir_internal.stream s USING (stream_id)
WHERE g.name = ANY(:groups)
UNION ALL
SELECT 'group', g.name, 'store', a.name
FROM weir_internal.reader_group g
CROSS JOIN LATERAL (
    SELECT DISTINCT n.store_id FROM (
        SELECT p.store_id FROM weir_internal.adjunct_pin p WHERE p.group_id = g.group_id
        ORDER BY p.batch_id DESC LIMIT 100) n) p
JOIN weir_internal.adjunct_store a USING (store_id)
WHERE g.name = ANY(:groups)
UNION ALL
SELECT 'store', a.name, 'stream', s.stream_name
FROM weir_internal.adjunct_store a JOIN weir_internal.stream s USING (stream_id)
WHERE a.name = ANY(:stores)
ORDER BY 2, 3, 4 LIMIT 1000"""
_THERE = """SELECT EXISTS (SELECT FROM weir_internal.stream
                           WHERE stream_name = :stream AND state <> 'deleted')
    OR EXISTS (SELECT FROM weir_internal.reader_group WHERE name = :group)
    OR EXISTS (SELECT FROM weir_internal.adjunct_store WHERE name = :store)"""
# What commits read and wrote, those of a group or of a writer together. Files and folders by the
# folder that they are in.
_EXACT = """
SELECT min(l.step) AS step, l.side, l.kind,
    CASE WHEN l.kind IN ('file', 'parquet') THEN regexp_replace(l.name, '/[^/]*\\Z', '')
         ELSE l.name END AS name,
    CASE WHEN l.reader_group IS NULL THEN 'writer' ELSE 'group' END AS by_kind,
    coalesce(l.reader_group, l.run) AS by_name,
    coalesce(sum(l.name_to - l.name_from), 0)::bigint AS events
FROM weir.lineage(CAST(:of AS text), CAST(:direction AS text), :depth, CAST(:segment AS text),
    CAST(:first AS bigint), CAST(:past AS bigint)) l
WHERE l.side IS NOT NULL
GROUP BY 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4 LIMIT 1000"""


class GraphNode(BaseModel):
    """A stream, group, store, table, folder of files or parquet, or a writer (who appended).
    `level`: how many steps from what was asked about; less than 0: up, what it was made of."""

    kind: str
    name: str
    level: int


class GraphEdge(BaseModel):
    """What flowed from one node to another, by their numbers. `events`: of an exact graph only."""

    source: int
    target: int
    events: int | None


class Graph(BaseModel):
    """The nodes, the first of which was asked about. `exact`: by the commits of a run or a row;
    else by who reads what, and the newest hundred commits of each stream and group. `left_out`: how
    many more nodes were found."""

    nodes: list[GraphNode]
    edges: list[GraphEdge]
    exact: bool
    left_out: int


@router.get("/lineage")
def show_lineage(
    asked: Asked,
    stream: str = "",
    group: str = "",
    store: str = "",
    run: Annotated[str, Query(description="DAG/run/task, and /map index")] = "",
    segment: Annotated[str, Query(description="with offset: one row of the stream")] = "",
    offset: Annotated[int | None, Query(ge=0, lt=2**62)] = None,
    depth: Annotated[int, Query(ge=1, le=8)] = 4,
) -> Graph:
    """Return what something was made of, and what was made of it. A statement for each step."""
    given: list[Node] = [
        (kind, name)
        for kind, name in (("stream", stream), ("group", group), ("store", store), ("writer", run))
        if name
    ]
    row = bool(segment) or offset is not None
    if len(given) != 1 or (row and not (stream and segment and offset is not None)):
        raise InvalidInput(
            "arguments_conflict",
            "what the lineage is of is not clear; give a stream, a group, a store or a run, and of "
            "a stream, if wanted, segment and offset.",
        )
    if run or row:
        return _exact(asked, given[0], depth, segment or None, offset)
    return asked.snapshot(lambda connection: _found(connection, given[0], depth))


class _Drawing:
    """A graph that grows from the node that was asked about, until it is full."""

    def __init__(self, root: Node, exact: bool) -> None:
        self.levels, self.exact, self.beyond = {root: 0}, exact, set[Node]()
        self.edges: dict[tuple[Node, Node], int] = {}

    def add(self, node: Node, level: int) -> bool:
        """Add a node; return whether it is new, and there is room for it."""
        if node in self.levels:
            return False
        if len(self.levels) >= MOST:
            self.beyond.add(node)
            return False
        self.levels[node] = level
        return True

    def join(self, source: Node, target: Node, events: int = 0) -> None:
        edge = (source, target)
        self.edges[edge] = max(self.edges.get(edge, 0), events)

    def graph(self) -> Graph:
        number = {node: i for i, node in enumerate(self.levels)}
        return Graph(
            nodes=[GraphNode(kind=k, name=n, level=at) for (k, n), at in self.levels.items()],
            edges=[
                GraphEdge(
                    source=number[one], target=number[other],
                    events=events if self.exact and events else None,
                )
                for (one, other), events in self.edges.items()
                if one in number and other in number
            ],
            exact=self.exact,
            left_out=len(self.beyond),
        )  # fmt: skip


def _found(connection: Connection, root: Node, depth: int) -> Graph:
    given = dict.fromkeys(("stream", "group", "store"), "") | dict([root])
    if not rows(connection, _THERE, **given)[0][0]:
        raise NotFound("lineage_not_found", f"there is no {root[0]} {root[1]}.")
    drawing = _Drawing(root, exact=False)
    for statement, sign in ((_UP, -1), (_DOWN, 1)):
        front: Iterable[Node] = [root]
        for step in range(1, depth + 1):
            names = {f"{kind}s": [n for k, n in front if k == kind] for kind in given}
            if not any(names.values()):
                break
            front = []
            for row in rows(connection, statement, **names):
                node, other = (row.kind, row.name), (row.next_kind, row.next_name)
                if drawing.add(other, sign * step):
                    front.append(other)
                source, target = (other, node) if sign < 0 else (node, other)
                drawing.join(source, target)
    return drawing.graph()


def _exact(asked: Any, root: Node, depth: int, segment: str | None, offset: int | None) -> Graph:
    def read(direction: str) -> Callable[[Connection], list[Any]]:
        def work(connection: Connection) -> list[Any]:
            limit_statements(connection, PATIENCE)
            try:
                return rows(
                    connection, _EXACT, of=root[1], direction=direction, depth=(depth + 1) // 2,
                    segment=segment, first=offset, past=None if offset is None else offset + 1,
                )  # fmt: skip
            except OperationalError as error:
                if sqlstate(error) != CANCELLED:
                    raise
                raise InvalidInput(
                    "lineage_too_large",
                    f"the lineage of {root[1]} within {depth} steps is too large to be drawn; take "
                    "fewer steps, or read the function weir.lineage.",
                ) from None

        return work

    drawing = _Drawing(root, exact=True)
    for direction, sign in (("up", -1), ("down", 1)):
        for row in asked.snapshot(read(direction)):
            by = (row.by_kind, row.by_name) if row.step else root
            thing = (row.kind, row.name)
            # Commits are steps, and between two commits there is what one wrote and the other read.
            level = sign * max(2 * row.step - 1, 0) if root[0] == "stream" else sign * 2 * row.step
            drawing.add(by, level)
            drawing.add(thing, level + (-1 if row.side == "read" else 1))
            source, target = (thing, by) if row.side == "read" else (by, thing)
            drawing.join(source, target, row.events)
    if len(drawing.levels) == 1:
        raise NotFound(
            "lineage_not_found", f"nothing is known of {root[1]}: it has committed nothing."
        )
    return drawing.graph()
