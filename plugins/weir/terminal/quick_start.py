"""Start sooner: keep pyarrow from importing pandas, which it looks for at the first value that it
makes of one of Python's, and which takes a quarter of a short command."""

import sys

import pyarrow as pa


class _Hidden:
    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ImportError(name)


def without_pandas() -> None:
    """Let pyarrow believe, in this process, that there is no pandas. Only for commands that call
    nothing of a user; Python itself imports pandas as before."""
    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.scalar(0)
    finally:
        sys.meta_path.remove(hidden)
