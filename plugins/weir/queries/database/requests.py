"""Requests that were done. Made by `make queries` from sql/queries/database/requests.sql."""

from typing import Any, NamedTuple

from sqlalchemy import Connection, text

DONE = text(
    """SELECT arguments, result FROM request
WHERE request_id = :request_id AND operation = :operation AND object = :object"""
)


class Done(NamedTuple):
    """A row of `done`."""

    arguments: str
    result: dict[str, Any]


def done(connection: Connection, *, request_id: str, operation: str, object: str) -> Done | None:
    """Return the hash of a request's arguments, and its result."""
    result = connection.execute(
        DONE, {"request_id": request_id, "operation": operation, "object": object}
    )
    row = result.one_or_none()
    return None if row is None else Done._make(row)


RECORD = text(
    """INSERT INTO request (request_id, operation, object, arguments, result)
VALUES (:request_id, :operation, :object, :arguments, CAST(:answer AS jsonb))"""
)


def record(
    connection: Connection,
    *,
    request_id: str,
    operation: str,
    object: str,
    arguments: str,
    answer: str,
) -> None:
    """Record the result of a request."""
    result = connection.execute(
        RECORD,
        {
            "request_id": request_id,
            "operation": operation,
            "object": object,
            "arguments": arguments,
            "answer": answer,
        },
    )
    result.close()
