"""What a compacted file says of itself in its footer, so that a database that has forgotten it can
take it in the place of the files that it was made of."""

import json
from collections.abc import Mapping
from typing import NamedTuple

_KEY = b"weir"


class Description(NamedTuple):
    """Which events a file has. Their commits are those of the clocks of its rows."""

    segment_id: int
    start_offset: int
    events: int
    schema_version: int

    @property
    def notes(self) -> dict[str, str]:
        """It, as metadata of a Parquet file."""
        return {_KEY.decode(): json.dumps(self._asdict())}


def description_in(notes: Mapping[bytes, bytes]) -> Description | None:
    """Return what the metadata of a Parquet file say of it; None if nothing, or nonsense."""
    try:
        found = Description(**json.loads(notes[_KEY]))
    except (KeyError, ValueError, TypeError):
        return None
    numbers = all(isinstance(n, int) and 0 <= n < 1 << 63 for n in found)
    return found if numbers and found.events > 0 else None


def without_description(notes: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """Return the other metadata of a Parquet file."""
    return {key: value for key, value in notes.items() if key != _KEY}
