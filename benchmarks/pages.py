"""What the pages ask: each address at many streams beside few, as a browser asks."""

import time
from collections.abc import Callable
from functools import partial

from fastapi.testclient import TestClient

from benchmarks.control import _MOVED, FEW, _database
from benchmarks.figure import Figure
from benchmarks.setting import Setting, in_bulk
from weir.pages.app import Access, create_app
from weir.settings import Settings

ASKED = 10
MOST_BYTES = 300_000  # of an answer
PATHS = {
    "streams": "/api/streams",
    "search": "/api/streams?search=s9&sort=changed",
    "stream": "/api/streams/bench/s42",
    "map": "/api/streams/bench/s42/map",
    "groups": "/api/groups",
    "stores": "/api/stores",
    "lineage": "/api/lineage?stream=bench/s42",
    "runs": "/api/runs?upkeep=false",
    "retention": "/api/retention",
    "group": "/api/groups/s42-1",
}


def _anybody() -> None:
    """Let everybody see it."""


def asked(path: str, setting: Setting) -> Figure:
    """Return the figure of one address: seconds of an answer, of many streams beside few."""
    setting.durable(False)
    many = setting.many_streams
    clients = {}
    for streams in (many, FEW):
        in_bulk(_database(setting, streams), _MOVED)
        setting.server.psql("VACUUM ANALYZE", f"control_{streams}")
        settings = Settings(database=setting.server.dsn(f"control_{streams}", "weir_app"))
        access = Access(lambda _, mine=settings: mine, _anybody, _anybody, _anybody)  # type: ignore[misc]  # its type is that of Access
        clients[streams] = TestClient(create_app(access))

    def ask(streams: int) -> float:
        begun = time.perf_counter()
        for _ in range(ASKED):
            answer = clients[streams].get(path)
            assert answer.status_code == 200, answer.text
            assert len(answer.content) < MOST_BYTES, len(answer.content)
        return (time.perf_counter() - begun) / ASKED

    return Figure(
        f"pages/{next(name for name, one in PATHS.items() if one == path)}",
        f"what a page gets from {path} with {many:,} streams, beside {FEW}",
        partial(ask, many),
        partial(ask, FEW),
        limit=2.0,
        runs=3,
    )


FIGURES: dict[str, Callable[[Setting], Figure]] = {
    f"pages/{name}": partial(asked, path) for name, path in PATHS.items()
}
