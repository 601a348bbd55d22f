"""The app: its addresses, its headers, and what it says when something is wrong."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import FileResponse, JSONResponse, RedirectResponse
from fastapi.staticfiles import StaticFiles

from weir import __version__
from weir.pages import (
    actions,
    events,
    files,
    group_work,
    groups,
    key_map,
    lineage,
    newest_runs,
    now,
    outputs,
    retention,
    runs,
    stores,
    stream,
    streams,
    tables,
    timeline,
)
from weir.pages.answering import Refusal
from weir.pages.shells import STATIC, modules_of
from weir.settings import Settings

PAGES = (
    "now",
    "streams",
    "stream",
    "groups",
    "group",
    "outputs",
    "run",
    "retention",
    "time",
    "runs",
    "act",
    "files",
    "events",
    "lineage",
    "stores",
    "store",
    "tables",
    "table",
)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "private, no-cache",  # a browser asks again, by the ETag
}


def _nobody() -> None:
    raise HTTPException(403, "Forbidden")


@dataclass(frozen=True)
class Access:
    """Who may see what: dependencies of FastAPI, which refuse by raising HTTPException.

    `settings_of` returns the settings of the installation that a request names by `conn_id`, empty
    for the only one.
    """

    settings_of: Callable[[str], Settings]
    installation: Callable[..., object]  # anything of the installation that is named
    streams: Callable[..., object]  # streams and reader groups
    runs: Callable[..., object]  # of the DAG that the path names as `dag_id`; without, of some DAG
    events: Callable[..., object] = _nobody  # the events themselves, for those who may see streams
    dags: Callable[..., set[str] | None] = lambda: None  # whose runs a list has; None: all
    logs: str | None = None  # where the logs of tasks are, as an address beside the pages
    # A dependency that returns where a run of the `action` in the path is asked for, if anywhere.
    trigger: Callable[..., actions.Trigger | None] = actions.nowhere


def create_app(access: Access) -> FastAPI:
    """Return the app. The pages themselves have no data, so anybody may load them; all data comes
    from below `api`, for those whom `access` lets."""
    app = FastAPI(
        title="Weir", version=__version__, docs_url=None, redoc_url=None, openapi_url=None,
        description="What is in an installation of Weir. Read only.",
    )  # fmt: skip
    app.state.settings_of = access.settings_of
    app.state.logs = access.logs
    refusals: dict[int | str, dict[str, object]] = {
        status: {"model": Refusal} for status in (400, 404, 409, 503, "4XX")
    }
    for router, may_see in (
        (now.router, _streams_of(access)),
        (streams.router, access.streams),
        (stream.router, access.streams),
        (files.router, access.streams),
        (key_map.router, access.streams),
        (groups.router, access.streams),
        (group_work.router, access.streams),
        (retention.router, access.streams),
        (timeline.router, access.streams),
        (lineage.router, access.streams),
        (stores.router, access.streams),
        (tables.router, access.streams),
        (newest_runs.router, _runs_of(access)),
        (runs.router, access.runs),
        (actions.router_of(access.trigger), access.streams),
    ):
        app.include_router(
            router, prefix="/api", responses=refusals,
            dependencies=[Depends(access.installation), Depends(may_see)],
        )  # fmt: skip
    app.include_router(
        now.icon, dependencies=[Depends(access.installation), Depends(_streams_of(access))]
    )
    for router in (events.router, outputs.router, stores.values):
        app.include_router(
            router, prefix="/api", responses=refusals, dependencies=[
                Depends(one) for one in (access.installation, access.streams, access.events)
            ],
        )  # fmt: skip
    app.add_api_route(
        "/api/openapi.json", lambda: JSONResponse(app.openapi()),
        dependencies=[Depends(access.streams)], include_in_schema=False,
    )  # fmt: skip
    _serve_pages(app, PAGES)
    app.middleware("http")(_with_headers)
    return app


def _streams_of(access: Access) -> Callable[..., None]:
    def may_see(
        request: Request,
        dags: Annotated[set[str] | None, Depends(access.dags)],
        _: Annotated[object, Depends(access.streams)],
    ) -> None:
        request.state.dags = dags

    return may_see


def _runs_of(access: Access) -> Callable[..., None]:
    def may_see(
        request: Request,
        dags: Annotated[set[str] | None, Depends(access.dags)],
        _: Annotated[object, Depends(access.runs)],
    ) -> None:
        request.state.dags = dags

    return may_see


def _serve_pages(app: FastAPI, names: Iterable[str]) -> None:
    """Serve a shell for each page, and what they load. All lie side by side, so that addresses in
    them are relative, wherever the app is mounted."""
    for name in names:
        app.add_api_route(f"/{name}", _shell(STATIC / f"{name}.html"), include_in_schema=False)
    app.add_api_route("/", lambda: RedirectResponse("now"), include_in_schema=False)
    app.mount("/assets", StaticFiles(directory=STATIC))
    app.add_exception_handler(404, _nothing_there(_shell(STATIC / "missing.html", 404)))


def _nothing_there(
    missing: Callable[[], FileResponse],
) -> Callable[[Request, Exception], Response]:
    def answer(request: Request, error: Exception) -> Response:
        path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
        if path.startswith("/assets/"):
            return Response(status_code=404)
        if path.startswith("/api/"):
            said = Refusal.Error(
                code="address_not_found",
                sentence="there is nothing at this address; /weir/api/openapi.json has what there "
                "is.",
            )
            return JSONResponse(Refusal(error=said).model_dump(), 404)
        below = path.count("/") - 1  # the assets of a page lie beside it
        return RedirectResponse("../" * below + "missing") if below else missing()

    return answer


def _shell(path: Path, status: int = 200) -> Callable[[], FileResponse]:
    links = ", ".join(f"<assets/js/{name}>; rel=modulepreload" for name in modules_of(path))

    # A parameter with a default would be one of the query, and name any file.
    def shell() -> FileResponse:
        return FileResponse(path, status, {"Link": links})

    return shell


async def _with_headers(
    request: Request, call_next: Callable[[Request], Awaitable[Response]]
) -> Response:
    response = await call_next(request)
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response
