"""What Weir serves beside Airflow's own pages, below `/weir`: the metrics, to whoever is logged in
or has the token of the setting `metrics_token`, and the pages of `weir.airflow.reports`."""

import hmac
import threading
from dataclasses import replace
from typing import Annotated

from airflow.api_fastapi.core_api.security import get_user
from fastapi import Depends, FastAPI, HTTPException, Request, status
from fastapi.responses import PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from weir.airflow.reports import pages
from weir.database.connection import Database
from weir.errors import WeirError
from weir.operations.metrics import as_text, rows_of
from weir.settings import load

app = FastAPI(title="Weir", docs_url=None, redoc_url=None, openapi_url=None)
app.include_router(pages)
_asking = threading.Lock()  # several monitors at once cost the database no more than one

Given = Annotated[HTTPAuthorizationCredentials | None, Depends(HTTPBearer(auto_error=False))]


async def may_look(request: Request, given: Given) -> None:
    """Let whoever gives the token pass, and users of Airflow."""
    token = load().metrics_token
    if token and given and hmac.compare_digest(given.credentials.encode(), token.encode()):
        return
    await get_user(request, None, given)


@app.get("/metrics", dependencies=[Depends(may_look)], response_class=PlainTextResponse)
def metrics() -> str:
    """Return the metrics of all streams and groups, as Prometheus reads them."""
    with _asking:
        # Who asks comes again, so it does not wait for a database that is away.
        hasty = replace(load(), outage_patience=0.0, connect_patience=0.0, pool_size=1)
        database = Database.of(hasty)
        try:
            return as_text(rows_of(database))
        except WeirError as error:
            raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, error.sentence) from None
        finally:
            database.dispose()
