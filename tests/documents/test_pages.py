"""What the pages show is typed as it stands there, page by page, as a reader would: the commands,
statements and programs that need no Spark."""

from collections.abc import Callable
from pathlib import Path

import pyarrow
import pyarrow.compute
import pytest

import weir as library
from tests.conftest import TestDatabase
from tests.crash.jobs import execute
from tests.documents.blocks import PAGES, blocks
from tests.documents.reader import Reader
from tests.documents.world import TABLE, bring, settle
from tests.terminal.conftest import Done
from tests.terminal.conftest import weir as weir
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.model.names import stream_name
from weir.model.scaling_policy import ScalingPolicy
from weir.settings import Settings

PLAYED = [page for page in PAGES if any(one.runs and not one.mark for one in blocks(page))]


@pytest.mark.parametrize("page", PLAYED)
def test_a_page_does_what_it_says(
    page: str,
    weir: Callable[..., Done],
    settings: Settings,
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bring(tmp_path)
    execute(test_database.owner_dsn, TABLE)
    monkeypatch.setenv("WEIR_DATABASE_OWNER", test_database.owner_dsn)
    with library.open(settings=settings, source="test") as store:
        settle(store, page)
        known: dict[str, object] = {
            "store": store, "database": store.database, "warehouse": settings.warehouse,
            "pa": pyarrow, "pc": pyarrow.compute, "stream_name": stream_name,
            "ScalingPolicy": ScalingPolicy, "DataFrame": object,
        }  # fmt: skip
        superuser = postgres_server.dsn(test_database.name, "postgres")
        reader = Reader(tmp_path, test_database, weir, superuser, known)
        for block in blocks(page):
            if block.runs and not block.mark:
                reader.play(block)
