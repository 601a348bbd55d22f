"""What the pages ask: each address of much beside little, as a browser asks."""

import time
from collections.abc import Callable
from functools import partial

from fastapi.testclient import TestClient

from benchmarks.figure import Figure
from benchmarks.pages_world import FEW, Size, many, world
from benchmarks.setting import Setting
from weir.pages.app import Access, create_app
from weir.settings import Settings

ASKED = 10
MOST_BYTES = 300_000  # of an answer
LONG = "/api/streams/bench/long"
_LINES = ",".join(["bench/long", "long", *(f"bench/s{i},s{i}-1" for i in range(1, 8))])
PATHS = {
    "now": "/api/now",
    "streams": "/api/streams",
    "search": "/api/streams?search=s9&sort=changed",
    "stream": LONG,
    "small_stream": "/api/streams/bench/s42",
    "map": f"{LONG}/map",
    "files": f"{LONG}/files",
    "compaction": f"{LONG}/compaction",
    "why": "/api/streams/bench/s42/why",
    "why_file": f"{LONG}/why?path={{long}}/_weir_tx=42",
    "groups": "/api/groups",
    "group": "/api/groups/long",
    "work": "/api/groups/long/work",
    "cost": "/api/groups/long/cost",
    "stores": "/api/stores",
    "store": "/api/stores/bench/s2",
    "lineage": "/api/lineage?stream=bench/long",
    "row": "/api/lineage?stream=bench/long&segment=0.0&offset=42",
    "runs": "/api/runs?upkeep=false",
    "run": "/api/runs/dag?run_id=42&task_id=process",
    "retention": "/api/retention",
    "alerts": "/api/tables/alerts",
    "disk": "/api/tables/disk",
    "columns": "/api/tables/columns?stream=bench/long",
    "calendar": "/api/tables/calendar?stream=bench/long",
    "retention_week": "/api/retention?days=7",
    "damage": "/api/tables/damage",
    "verified": "/api/tables/verified",
    "publications": "/api/tables/publications",
    "time": "/api/time",
    "time_week": f"/api/time?hours=168&of={_LINES}",
    "time_month": f"/api/time?hours=720&of={_LINES}",
    "owners": "/api/time/owners",
}


def _anybody() -> None:
    """Let everybody see it."""


def asked(name: str, setting: Setting) -> Figure:
    """Return the figure of one address: seconds of an answer, of much beside little."""
    setting.durable(False)
    much = many(setting)
    clients = {}
    for size in (much, FEW):
        world(setting, size)
        settings = Settings(database=setting.server.dsn(f"pages_{size.streams}", "weir_app"))
        access = Access(lambda _, mine=settings: mine, _anybody, _anybody, _anybody)  # type: ignore[misc]  # its type is that of Access
        clients[size] = TestClient(create_app(access))
    path = PATHS[name]

    def ask(size: Size) -> float:
        begun = time.perf_counter()
        for _ in range(ASKED):
            answer = clients[size].get(path.format(long=size.streams + 1))
            assert answer.status_code == 200, answer.text
            assert len(answer.content) < MOST_BYTES, len(answer.content)
        return (time.perf_counter() - begun) / ASKED

    return Figure(
        f"pages/{name}",
        f"what a page gets from {path} with {much.streams:,} streams, {much.segments:,} segments "
        f"and {much.segments * 10:,} commits, beside {FEW.streams}, {FEW.segments:,} and "
        f"{FEW.segments * 10:,}",
        partial(ask, much),
        partial(ask, FEW),
        limit=2.0,
        runs=3,
    )


FIGURES: dict[str, Callable[[Setting], Figure]] = {
    f"pages/{name}": partial(asked, name) for name in PATHS
}
