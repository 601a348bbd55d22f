"""What Weir serves beside Airflow's own pages, below `/weir`: the pages of `weir.pages` behind
Airflow's login, and the metrics, to whoever is logged in or has the token of the setting
`metrics_token`."""

import hmac
import threading
from typing import Annotated

from fastapi import Depends, HTTPException, Request, status
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from weir.airflow.access import (
    get_user,
    may_look_through,
    may_see_events,
    may_see_runs,
    may_see_streams,
    seen_dags,
    trigger,
)
from weir.airflow.connection import settings_of
from weir.database.connection import Database
from weir.errors import WeirError
from weir.pages.app import Access, create_app
from weir.pages.metrics import as_text, rows_of
from weir.settings import hasty, load

app = create_app(
    Access(
        settings_of,
        may_look_through,
        may_see_streams,
        may_see_runs,
        may_see_events,
        logs="../dags",
        trigger=trigger,
        dags=seen_dags,
    )
)
_asking = threading.Lock()  # several monitors at once cost the database no more than one

Given = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


async def may_look(request: Request, given: Given) -> None:
    """Let whoever gives the token pass, and users of Airflow."""
    token = load().metrics_token
    if token and given and hmac.compare_digest(given.credentials.encode(), token.encode()):
        return
    await get_user(request, None, given)


@app.get(
    "/metrics", dependencies=[Depends(may_look)], response_class=PlainTextResponse,
    include_in_schema=False,
)  # fmt: skip
def metrics() -> str:
    """Return the metrics of all streams and groups, as Prometheus reads them."""
    if not _asking.acquire(blocking=False):  # a thread of the API server would wait
        raise HTTPException(
            status.HTTP_503_SERVICE_UNAVAILABLE, "another monitor is being answered; ask again."
        )
    try:
        with Database.of(hasty(load())) as database:
            return as_text(rows_of(database))
    except WeirError as error:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, error.sentence) from None
    finally:
        _asking.release()
