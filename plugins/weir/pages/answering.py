"""What all addresses below `api` have in common: the database that they ask, how they answer."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel
from sqlalchemy import Connection
from sqlalchemy.exc import OperationalError

from weir.database.connection import Database
from weir.database.refusals import sqlstate
from weir.database.time_limit import CANCELLED, limit_statements
from weir.errors import Conflict, DatabaseFailed, InvalidInput, NotFound, Unavailable, WeirError
from weir.front_ends import speaking_to_one
from weir.model.names import shortened
from weir.operations.jobs import FORMS
from weir.queries.pages import answering as sql
from weir.settings import hasty


class Refusal(BaseModel):
    """What is wrong: a code, which stays, and a sentence for the person who asked."""

    class Error(BaseModel):
        code: str
        sentence: str

    error: Error

    @classmethod
    def of(cls, error: WeirError) -> "Refusal":
        return cls(error=cls.Error(code=error.code, sentence=error.sentence))


class Tagged(APIRoute):
    """Answers with an ETag made of what it answers, with 304 to whoever has it already, and with
    the sentence of an error."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        """Return what FastAPI calls for each request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                _check_texts(request)
                with speaking_to_one("form", FORMS, ""):
                    response = await handle(request)
            except HTTPException as error:  # of who decides what one may see
                code = "login_needed" if error.status_code == 401 else "not_allowed"
                said = Refusal.Error(code=code, sentence=str(error.detail))
                return JSONResponse(
                    Refusal(error=said).model_dump(), error.status_code, error.headers
                )
            except RequestValidationError as error:
                return _refused(_wrong(error))
            except WeirError as error:
                return _refused(error)
            tag = f'"{blake2b(bytes(response.body), digest_size=12).hexdigest()}"'
            if tag in request.headers.get("if-none-match", ""):
                response = Response(status_code=304)
            response.headers["ETag"] = tag
            return response

        return answer


def _check_texts(request: Request) -> None:
    """Raise InvalidInput for a text that the database takes for none. A routing key goes to no
    database, and has a sentence of its own."""
    given = request.path_params | dict(request.query_params)
    if any("\0" in text for name, text in given.items() if name != "key"):
        raise InvalidInput("argument_invalid", "a text holds the character NUL; leave it out.")


def not_a_page(after: str) -> InvalidInput:
    """Return the error that nothing has said this `next`."""
    return InvalidInput(
        "argument_invalid", f"after is {shortened(after)}; give `next` of the page before."
    )


def _wrong(error: RequestValidationError) -> InvalidInput:
    """Return the error that an argument of the query or the path is not what it may be."""
    first = error.errors()[0]
    name, given = first["loc"][-1], first.get("input")
    value = "" if first["type"] == "missing" else f" is {shortened(given)}, which is wrong"
    said = str(first["msg"])
    return InvalidInput(
        "argument_invalid", f"{name}{value}: {said[:1].lower()}{said[1:]}; /weir/api/openapi.json "
        "has what each address takes.",
    )  # fmt: skip


def _refused(error: WeirError) -> JSONResponse:
    return JSONResponse(Refusal.of(error).model_dump(), _status_of(error))


def _status_of(error: WeirError) -> int:
    if isinstance(error, (NotFound, InvalidInput)):
        return 404 if isinstance(error, NotFound) else 400
    if isinstance(error, Conflict):
        return 409
    return 503 if isinstance(error, (Unavailable, DatabaseFailed)) else 500


def _opened(request: Request, conn_id: str = "") -> Iterator[Database]:
    """Yield the database of the installation that a request is about. A page asks again, so it
    does not wait for a database that is away."""
    with Database.of(hasty(request.app.state.settings_of(conn_id))) as database:
        yield database


Asked = Annotated[Database, Depends(_opened)]


@contextmanager
def within(connection: Connection, seconds: float, refusal: InvalidInput) -> Iterator[None]:
    """Give each statement so much time, and raise `refusal` for one that takes longer."""
    limit_statements(connection, seconds)
    try:
        yield
    except OperationalError as error:
        if sqlstate(error) != CANCELLED:
            raise
        raise refusal from None


def check_stream(connection: Connection, stream: str) -> None:
    """Raise NotFound for a stream that does not exist."""
    if not sql.is_stream(connection, stream=stream):
        raise NotFound("stream_not_found", f"there is no stream {stream}.")
