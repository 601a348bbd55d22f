"""The app of the pages over a real database, as somebody who may see everything."""

from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

from weir.pages.app import Access, create_app
from weir.settings import Settings


def anybody() -> None:
    """Let everybody see it."""


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """Yield a client of the app."""
    app = create_app(Access(lambda conn_id: settings, anybody, anybody, anybody))
    with TestClient(app) as client:
        yield client
