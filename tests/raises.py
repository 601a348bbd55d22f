"""How tests name an error: by its code, which is a promise; its sentence may be reworded."""

import re

import pytest

from weir.errors import WeirError


def raises(wanted: str) -> pytest.RaisesExc[WeirError]:
    """Return a context that expects an error of Weir: its code and, after blanks, values that its
    sentence has in this order, as in `raises("cut_invalid 6 0.0")`."""
    code, *values = wanted.split()
    named = ".*".join(rf"(?<!\w){re.escape(value)}(?!\w)" for value in values)
    return pytest.RaisesExc(
        WeirError, match=re.compile(named, re.DOTALL), check=lambda error: _is(error, code)
    )


def _is(error: WeirError, code: str) -> bool:
    assert error.code == code, f"not {code}, but {error}"
    return True
