"""Requests: the same request returns the recorded result, with other arguments it is a conflict.

So a killed and retried task does no harm: its request id is the DAG run, the task and its item,
without the number of the try (semantics 4.2).
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from weir.errors import Conflict
from weir.queries.database import requests as sql


@dataclass(frozen=True)
class Request:
    """An operation on an object, asked for under an id. `arguments`: what must be equal on a
    repetition.
    """

    request_id: str
    operation: str
    object: str
    arguments: dict[str, Any]

    @property
    def _hash(self) -> str:
        return hashlib.sha256(json.dumps(self.arguments, sort_keys=True).encode()).hexdigest()

    def result(self, connection: Connection) -> dict[str, Any] | None:
        """Return the recorded result if the request was done before, else None.

        Call it after locking the object. Raises Conflict if the id was used for this operation and
        object with other arguments.
        """
        row = sql.done(
            connection, request_id=self.request_id, operation=self.operation, object=self.object
        )
        if row is None:
            return None
        if row.arguments != self._hash:
            raise Conflict(
                "request_reused",
                f"request {self.request_id!r} was already used for {self.operation} on "
                f"{self.object} with other arguments; use another request id.",
            )
        return row.result

    def done(self, connection: Connection, result: dict[str, Any]) -> dict[str, Any]:
        """Record the result in the transaction of the change itself, and return it."""
        sql.record(
            connection,
            request_id=self.request_id,
            operation=self.operation,
            object=self.object,
            arguments=self._hash,
            answer=json.dumps(result),
        )
        return result
