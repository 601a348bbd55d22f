"""An opened installation of which something is erased."""

from collections.abc import Iterator

import pytest

import weir
from weir.programs.store import StreamStore
from weir.settings import Settings


@pytest.fixture
def store(settings: Settings) -> Iterator[StreamStore]:
    with weir.open(settings=settings) as opened:
        yield opened
