"""The consumer that was declared for a reader group: what its runs do if they do not say."""

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.database.requests import Request
from weir.queries.reader_groups.groups import consumers as sql
from weir.reader_groups.locks import lock_group


def declare_consumer(
    database: Database, group: str, settings: Mapping[str, object], *, request_id: str
) -> dict[str, object]:
    """Record the arguments of `weir_process` that runs of a group take where they give none, in
    place of those recorded before. Raises NotFound."""
    request = Request[dict[str, object]](request_id, "declare_consumer", group, dict(settings))

    def work(connection: Connection) -> dict[str, object]:
        locked = lock_group(connection, group)
        if (before := request.result(connection)) is not None:
            return before
        sql.declare(connection, consumer=json.dumps(dict(settings)), group_id=locked.group_id)
        return request.done(connection, {"reader_group": group, "consumer": dict(settings)})

    return database.transaction(work)


def declared_consumer(connection: Connection, group: str) -> dict[str, Any]:
    """Return the arguments that were declared for a group; none if it has no consumer, or if there
    is no such group."""
    return sql.declared(connection, group=group) or {}
