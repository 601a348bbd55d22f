"""How tests name an error: by its code, which is a promise; its sentence may be reworded."""

import pytest

from weir.errors import WeirError


def raises(code: str, match: str | None = None) -> pytest.RaisesExc[WeirError]:
    """A context that expects an error of Weir with this code; `match`, a regular expression, finds
    the values in its sentence that are the subject of the test."""
    return pytest.RaisesExc(WeirError, match=match, check=lambda error: _is(error, code))


def _is(error: WeirError, code: str) -> bool:
    assert error.code == code, f"expected {code}: {error}"
    return True
