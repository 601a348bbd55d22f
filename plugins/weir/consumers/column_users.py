"""Who names the columns of a stream that are to change: consumers, their functions and outputs,
and adjunct stores (semantics 5.5)."""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection

from weir.consumers.column_stores import of_function, of_stores
from weir.controller.locks import LockedStream
from weir.controller.update import Allowing
from weir.errors import Conflict
from weir.front_ends import give
from weir.model.column_changes import ColumnChanges
from weir.queries.consumers import column_users as sql

_SHOWN = 5


def allowing(allow_named: bool, function_path: Sequence[str]) -> Allowing:
    """Return what `update_stream` asks before columns change: it lists who names them, or may.

    It raises Conflict if there is anybody, unless `allow_named`; and in any case for a change
    after which an adjunct store of the stream would mix what it has with what comes.
    `function_path`: folders in which the modules of functions are looked for; none is imported.
    """

    def ask(connection: Connection, stream: LockedStream, changes: ColumnChanges) -> list[str]:
        lines = of_stores(connection, stream, changes, function_path)
        lines += _of_groups(connection, stream, changes, function_path)
        if lines and not allow_named:
            more = f" (and {len(lines) - _SHOWN:,} more)" if len(lines) > _SHOWN else ""
            raise Conflict(
                "columns_in_use",
                f"the columns of stream {stream.name} are not changed, because others name them: "
                f"{'; '.join(lines[:_SHOWN])}{more}; change these at the same time, and "
                f"{give(allow_named=True)}.",
            )
        return lines

    return ask


def _of_groups(
    connection: Connection,
    stream: LockedStream,
    changes: ColumnChanges,
    function_path: Sequence[str],
) -> list[str]:
    rows = sql.groups_of(connection, stream_id=stream.stream_id)
    found, touched = [], list(changes.touched)
    for group, consumer in rows:
        settings = consumer or {}
        function = settings.get("function", "")
        if not function:
            found.append(
                f"reader group {group} reads the stream, and no consumer is declared for it that "
                "would say which columns its function uses"
            )
        else:
            said = of_function(f"consumer {group}", function, touched, function_path)
            found += dict.fromkeys(said.values())
        found += _of_outputs(group, settings, changes)
    return found


def _of_outputs(group: str, settings: dict[str, Any], changes: ColumnChanges) -> list[str]:
    """Return which declared outputs and parameters of a consumer have the name of a column."""
    found = []
    for output in settings.get("outputs", []):
        options = [one.partition("=")[2].split(",") for one in str(output).split()[1:]]
        named = {name.lower() for some in options for name in some}
        found += [
            f"the output {output!r} of consumer {group} names {name!r}"
            for name in changes.touched
            if name.lower() in named
        ]
    given = json.dumps(settings.get("parameters", {}))
    found += [
        f"the parameters of consumer {group} name {name!r}"
        for name in changes.touched
        if f'"{name.lower()}"' in given.lower()
    ]
    return found
