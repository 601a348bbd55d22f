"""A stream as a map: key space over time, in a bounded number of rectangles."""

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from weir.model.clock import to_clock
from weir.model.names import stream_name
from weir.pages.answering import Asked, Tagged
from weir.pages.stream_map import KeyMap, key_map

router = APIRouter(route_class=Tagged, tags=["streams"])


@router.get("/streams/{scope}/{name}/map")
def show_map(
    asked: Asked,
    scope: str,
    name: str,
    since: AwareDatetime | None = None,
    until: AwareDatetime | None = None,
    width: Annotated[int, Query(ge=100, le=10_000)] = 1000,
) -> KeyMap:
    """Return the key space of a stream over time, for a picture that is `width` pixels wide. Five
    statements. Segments that are too many for rectangles of their own share the rows of a grid."""
    stream = stream_name(f"{scope}/{name}")
    begin, end = (None if one is None else to_clock(one) for one in (since, until))
    return asked.snapshot(lambda c: key_map(c, stream, begin, end, width))
