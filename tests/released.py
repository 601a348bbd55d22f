"""Cases of a test of which `make test` plays some, and `make test-release` all."""

from collections.abc import Iterable
from typing import Any

import pytest


def only(*played: Any, of: Iterable[Any]) -> list[Any]:
    """Return the values `of` an argument of a test for parametrize; those that are not `played` in
    each run are marked `release`."""
    values = list(of)
    assert all(value in values for value in played), f"{played} are not among {values}"
    return [
        value if value in played else pytest.param(value, marks=pytest.mark.release)
        for value in values
    ]
