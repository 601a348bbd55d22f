"""What is wrong now: the page that one begins with, and the number beside Weir in Airflow."""

from collections.abc import Callable, Coroutine
from datetime import UTC, datetime

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel

from weir.database.connection import Database
from weir.errors import WeirError
from weir.pages.answering import Asked, Tagged
from weir.pages.shells import STATIC
from weir.queries.pages import health as sql
from weir.queries.pages.health import Trouble

router = APIRouter(route_class=Tagged, tags=["now"])

MOST = 99  # troubles that an answer has


class Now(BaseModel):
    """What is wrong, the worst first. `more`: whether there is more than that."""

    troubles: list[Trouble]
    more: bool


@router.get("/now")
def show_now(asked: Asked, request: Request) -> Now:
    """Return what is wrong now and somebody should do something about. One statement."""
    return _now(asked, request)


def _now(asked: Database, request: Request) -> Now:
    dags = None if request.state.dags is None else sorted(request.state.dags)
    found = asked.snapshot(lambda c: sql.troubles(c, dags=dags, most=MOST + 1))
    return Now(troubles=sorted(found[:MOST], key=_worst_first), more=len(found) > MOST)


def _worst_first(one: Trouble) -> tuple[bool, datetime, str]:
    return one.severity != "red", one.since or datetime.max.replace(tzinfo=UTC), one.subject


class _Icon(APIRoute):
    """Answers whoever may not know the number, or if nobody does, with the icon alone: a
    navigation shows it to all."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[object, object, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(request)
            except (HTTPException, WeirError):
                return _icon()

        return answer


icon = APIRouter(route_class=_Icon)


@icon.get("/now.svg", include_in_schema=False)
def show_icon(asked: Asked, request: Request) -> Response:
    """Return Weir's icon, with how much is wrong."""
    return _icon(_now(asked, request))


def _icon(now: Now | None = None) -> Response:
    text = (STATIC / "weir.svg").read_text(encoding="utf-8")
    if now and now.troubles:
        red = any(one.severity == "red" for one in now.troubles)
        colour = "#c0292f" if red else "#9a5b00"
        number = len(now.troubles) if len(now.troubles) < 10 else "9+"  # it is 20 pixels wide
        badge = (
            f'<g stroke="none"><circle cx="16" cy="8" r="8" fill="{colour}"/>'
            '<text x="16" y="11.7" text-anchor="middle" font-family="sans-serif" font-weight="700" '
            f'font-size="10.5" fill="#fff">{number}</text></g></svg>'
        )
        text = text.replace("</svg>", badge)
    return Response(text, media_type="image/svg+xml")
