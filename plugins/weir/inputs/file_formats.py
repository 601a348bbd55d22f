"""Derive the format of input files from the endings of their names."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from weir.errors import InvalidInput

AUTO = "auto"
FORMATS = ("parquet", "csv", "json")
TABS = "csv with tabs"  # what a name that ends in .tsv shows
_ENDINGS = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".tsv": TABS,
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
# The endings of compressed text files. Parquet files are compressed inside.
_COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")


def format_of(paths: Sequence[str]) -> str:
    """Return the format that the names of all these files show: one of `FORMATS`, or `TABS`.

    Raises InvalidInput for a name that shows no format, and for files of several formats.
    """
    found: dict[str, str] = {}
    for path in paths:
        name = PurePosixPath(path.lower())
        inner = PurePosixPath(name.stem) if name.suffix in _COMPRESSIONS else name
        format_ = _ENDINGS.get(inner.suffix)
        if format_ is None or (format_ == "parquet" and inner != name):
            raise InvalidInput(
                "file_invalid",
                f"the name of the input file {path!r} does not show its format; choose "
                f"{', '.join(FORMATS[:-1])} or {FORMATS[-1]}.",
            )
        found.setdefault(format_, path)
    if len(found) > 1:
        named = " and ".join(f"{path!r} is {format_}" for format_, path in found.items())
        raise InvalidInput(
            "file_invalid",
            f"the names of the input files show several formats ({named}); choose the one that "
            "all of them have, or append the files of each format separately.",
        )
    return next(iter(found))
