"""Requests: the same request returns the recorded result, with other arguments it is a conflict.

So a killed and retried task does no harm: its request id is the DAG run, the task and its item,
without the number of the try (semantics 4.2).
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from sqlalchemy import Connection

from weir.errors import Conflict, NotFound
from weir.queries.database import requests as sql

R = TypeVar("R", bound=Mapping[str, object])  # what the operation returns, as JSON


@dataclass(frozen=True)
class Request(Generic[R]):
    """An operation on an object, asked for under an id. `arguments`: what must be equal on a
    repetition.
    """

    request_id: str
    operation: str
    object: str
    arguments: Mapping[str, Any]

    @property
    def _hash(self) -> str:
        return hashlib.sha256(json.dumps(self.arguments, sort_keys=True).encode()).hexdigest()

    def result(self, connection: Connection) -> R | None:
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
        return cast(R, row.result)

    def deleted(
        self, connection: Connection, work: Callable[[Connection], R], *, dry_run: bool
    ) -> R:
        """Call `work`, which locks an object, deletes it and records that, unless that was done: of
        what is deleted there is no row to lock. Raises NotFound if it is deleted otherwise."""
        if not dry_run and (before := self.result(connection)) is not None:
            return before
        try:
            return work(connection)
        except NotFound:  # another try of this request may have deleted it meanwhile
            if (before := self.result(connection)) is None:
                raise
            return before

    def done(self, connection: Connection, result: R) -> R:
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
