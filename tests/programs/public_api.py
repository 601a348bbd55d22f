"""A snapshot of what programs use, one line for each name: `make api` writes it anew."""

from collections import Counter
from pathlib import Path

from docs.generate_python import sections, signature

SNAPSHOT = Path(__file__).with_suffix(".txt")


def snapshot() -> str:
    """Return the names with their arguments, types and defaults, in alphabetical order."""
    lines = [signature(name, what) for names in sections().values() for name, what in names]
    assert max(Counter(lines).values()) == 1
    return "\n".join(sorted(lines)) + "\n"


if __name__ == "__main__":
    SNAPSHOT.write_text(snapshot())
