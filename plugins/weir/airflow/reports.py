"""Pages behind Airflow's login: the report of a run, a reader group. They only read."""

import functools
import json
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

from fastapi import APIRouter, Depends
from fastapi.responses import HTMLResponse
from sqlalchemy import Connection, text

from weir.airflow.access import may_look_through, may_see_runs, may_see_streams
from weir.airflow.connection import settings_of
from weir.database.connection import Database
from weir.errors import NotFound, WeirError
from weir.history.job_runs import RunId
from weir.history.lineage import lineage_of
from weir.settings import hasty

pages = APIRouter(dependencies=[Depends(may_look_through)], include_in_schema=False)
_STYLE = """
body {font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem}
table {border-collapse: collapse; margin: .5rem 0 1.5rem}
td, th {padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top;
        border-bottom: 1px solid #ddd}
td.n {text-align: right} h1 {font-size: 1.4rem} h2 {font-size: 1.1rem} .bad {color: #b00}
pre {white-space: pre-wrap; margin: 0; font: inherit}
@media (prefers-color-scheme: dark) {
    body {background: #161616; color: #ddd} td, th {border-color: #444}
}"""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'",
    "Cache-Control": "no-store",
}


def _refusing(page: Callable[..., HTMLResponse]) -> Callable[..., HTMLResponse]:
    """Let a page show what is wrong."""

    @functools.wraps(page)
    def shown(*args: Any, **given: Any) -> HTMLResponse:
        try:
            return page(*args, **given)
        except WeirError as error:
            status = 404 if isinstance(error, NotFound) else 503
            return _page("Weir", [f'<p class="bad">{escape(str(error))}</p>'], status)

    return shown


@pages.get("/runs/{dag_id}", dependencies=[Depends(may_see_runs)])
@_refusing
def run_page(
    dag_id: str, run_id: str, task_id: str, map_index: int = -1, conn_id: str = ""
) -> HTMLResponse:
    """Show what a task did, in its last try: its state, its report, what it read and wrote."""
    run = RunId(dag_id, run_id, task_id, map_index)

    def read(connection: Connection) -> tuple[Any, list[Any]]:
        row = connection.execute(
            text(
                """SELECT * FROM job_runs WHERE dag_id = :dag_id AND run_id = :run_id
                AND task_id = :task_id AND map_index = :map_index
                ORDER BY try_number DESC LIMIT 1"""
            ),
            run.__dict__,
        ).one_or_none()
        if row is None:
            raise NotFound("run_not_found", f"Weir has no record of {run}; it has not begun yet.")
        return row, [one for one in lineage_of(connection, str(run), depth=0) if one.side]

    with Database.of(hasty(settings_of(conn_id))) as database:
        row, steps = database.snapshot(read)
    kind = "bad" if row.state in ("failed", "killed") else ""
    took = ""
    if row.ended_at is not None:
        took = f" in {(row.ended_at - row.started_at).total_seconds():.1f} s"
    parts = [
        f"<p>Job <b>{escape(row.job)}</b> of {escape(str(run))}, try {row.try_number}: "
        f'<b class="{kind}">{escape(row.state)}</b>{took}, '
        f"begun {row.started_at:%Y-%m-%d %H:%M:%S %Z}</p>"
    ]
    if row.error or row.state == "running":
        parts.append(f'<p class="{kind}">{escape(row.error or row.progress or "")}</p>')
    for title, shown in (("Report", row.report or {}), ("Arguments", row.arguments)):
        parts += [f"<h2>{title}</h2>", _pairs(shown)]
    for side, title in (("read", "Read"), ("wrote", "Wrote")):
        found = [
            (one.kind, one.name, one.segment or "", one.from_offset, one.to_offset)
            for one in steps
            if one.side == side
        ]
        if found:  # of an append whose input is unknown the report says more
            heads = ("", "name", "segment", "from", "to")
            parts += [f"<h2>{title}</h2>", _table(heads, found[:1000])]
    return _page(f"{row.job}: {row.state}", parts)


@pages.get("/groups/{name}", dependencies=[Depends(may_see_streams)])
@_refusing
def group_page(name: str, conn_id: str = "") -> HTMLResponse:
    """Show a reader group: what it has not read, and its newest batches."""
    with Database.of(hasty(settings_of(conn_id))) as database:
        lag, batches = database.snapshot(
            lambda c: _rows(
                c,
                {"group": name},
                "SELECT stream, unread_events, unread_bytes, lag, behind_since, lost_events "
                "FROM lag WHERE reader_group = :group ORDER BY stream LIMIT 1000",
                "SELECT batch_id, state, reader_id, opened_at, ended_at FROM batches "
                "WHERE reader_group = :group ORDER BY batch_id DESC LIMIT 20",
            )
        )
    if not lag[1]:
        raise NotFound("group_not_found", f"there is no reader group {name}.")
    parts = ["<h2>Unread</h2>", _table(*lag), "<h2>Newest batches</h2>", _table(*batches)]
    return _page(f"Reader group {name}", parts)


Rows = tuple[Sequence[str], list[Any]]


def _rows(connection: Connection, given: dict[str, Any], *statements: str) -> list[Rows]:
    """Return the names of the columns and the rows of each statement."""
    found: list[Rows] = []
    for statement in statements:
        result = connection.execute(text(statement), given)
        found.append((list(result.keys()), [tuple(row) for row in result]))
    return found


def _page(title: str, parts: Iterable[str], status: int = 200) -> HTMLResponse:
    body = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title>'
        f"<style>{_STYLE}</style><h1>{escape(title)}</h1>{''.join(parts)}</html>"
    )
    return HTMLResponse(body, status, _HEADERS)


def _pairs(found: dict[str, Any]) -> str:
    return _table(("", ""), list(found.items()))


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return "<p>nothing</p>"
    head = "".join(f"<th>{escape(one.replace('_', ' '))}</th>" for one in heads)
    lines = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f"<table>{f'<tr>{head}</tr>' if any(heads) else ''}{lines}</table>"


def _cell(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return f"<td>{'' if value is None else str(value).lower()}</td>"
    if isinstance(value, int):
        return f'<td class="n">{value:,}</td>'
    if isinstance(value, (dict, list)):
        return f"<td><pre>{escape(json.dumps(value, indent=1, default=str))}</pre></td>"
    return f"<td>{escape(str(value))}</td>"
