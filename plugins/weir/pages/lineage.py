"""Lineage as a graph: what a stream, a group, a store, a run or a row was made of, and what was
made of it."""

from collections.abc import Iterable
from functools import partial
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.database.connection import Database
from weir.errors import InvalidInput, NotFound
from weir.pages.answering import Asked, Tagged, within
from weir.queries.pages import lineage as sql

router = APIRouter(route_class=Tagged, tags=["lineage"])

MOST = 60  # nodes of a graph
PATIENCE = 2.0  # seconds, for the exact lineage of a run or a row
Node = tuple[str, str]  # kind, name


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
    kind, name = root
    there = sql.there(
        connection, stream=name * (kind == "stream"), group=name * (kind == "group"),
        store=name * (kind == "store"),
    )  # fmt: skip
    if not there:
        raise NotFound("lineage_not_found", f"there is no {root[0]} {root[1]}.")
    drawing = _Drawing(root, exact=False)
    for ask, sign in ((sql.up, -1), (sql.down, 1)):
        front: Iterable[Node] = [root]
        for step in range(1, depth + 1):
            streams, groups, stores = (
                [n for k, n in front if k == kind] for kind in ("stream", "group", "store")
            )
            if not streams + groups + stores:
                break
            front = []
            for row in ask(connection, streams=streams, groups=groups, stores=stores):
                node, other = (row.kind, row.name), (row.next_kind, row.next_name)
                if drawing.add(other, sign * step):
                    front.append(other)
                source, target = (other, node) if sign < 0 else (node, other)
                drawing.join(source, target)
    return drawing.graph()


def _exact(
    asked: Database, root: Node, depth: int, segment: str | None, offset: int | None
) -> Graph:
    refusal = InvalidInput(
        "answer_too_large",
        f"the lineage of {root[1]} within {depth} steps is too large to be drawn; take fewer "
        "steps, or read the function weir.lineage.",
    )

    def read(connection: Connection, direction: str) -> list[sql.Flow]:
        with within(connection, PATIENCE, refusal):
            return sql.exact(
                connection, of=root[1], direction=direction, depth=(depth + 1) // 2,
                segment=segment, first=offset, past=None if offset is None else offset + 1,
            )  # fmt: skip

    drawing = _Drawing(root, exact=True)
    for direction, sign in (("up", -1), ("down", 1)):
        for row in asked.snapshot(partial(read, direction=direction)):
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
