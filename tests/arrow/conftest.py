"""An object store for the tests without a JVM."""

from collections.abc import Iterator

import pytest

from tests.warehouse.object_store import ObjectStore, object_store


@pytest.fixture
def lake(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """An empty one, with the variables of this process that lead to it."""
    with object_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        for name in ("no_proxy", "http_proxy", "HTTP_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield store
