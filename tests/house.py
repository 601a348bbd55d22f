"""Count the house, by the same script and formatter each time, so that figures compare."""

import ast
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.rooms import (
    JOBS,
    LIBRARY,
    ORDER,
    QUERIES,
    REPOSITORY,
    files_of,
    imports_of,
    room_of,
)  # fmt: skip

_SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|MERGE|CREATE|ALTER|LOCK|COPY)\b[\s\S]*\s")
_GENERATED = {"docs/sql.md", "docs/python.md"}


def lines(paths: Iterable[Path]) -> int:
    """Count the lines of files."""
    return sum(len(path.read_text().splitlines()) for path in paths)


def words(paths: Iterable[Path]) -> int:
    """Count the words of files."""
    return sum(len(path.read_text().split()) for path in paths)


def statements(source: str) -> int:
    """Count the texts that are statements of SQL."""
    found = [
        node.value for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]  # fmt: skip
    return sum(bool(_SQL.match(text)) for text in found)


def written(paths: Iterable[Path]) -> list[Path]:
    """Return the files that somebody wrote: the typed statements are made from sql/queries."""
    return sorted(path for path in paths if LIBRARY / QUERIES not in path.parents)


@cache
def floor(room: str) -> int:
    """Return the floor of a room: one above the highest room that it imports from."""
    below = {
        other for path in files_of(room) for one in imports_of(path.read_text())
        if (other := room_of(one)) not in (None, room)
    }  # fmt: skip
    return 1 + max((floor(one) for one in below if one), default=-1)


_BESIDE = {"annex", "pages", "terminal", "local"}  # the core: all but these, and their jobs


def core_floors() -> int:
    """Return how many floors the core has, if the rooms in a room are one."""
    below: dict[str, set[str]] = {}
    for room in ORDER:
        own = room.split(".")[0]
        for path in files_of(room):
            for one in imports_of(path.read_text()):
                other = (room_of(one) or own).split(".")[0]
                if not _BESIDE & {own, other} and own != other:
                    below.setdefault(own, set()).add(other)

    @cache
    def height(room: str) -> int:
        return 1 + max(map(height, below.get(room, ())), default=0)

    return max(map(height, below))


def of_annexes(paths: Iterable[Path]) -> list[Path]:
    """Return the jobs that import an annex."""
    return [path for path in paths if any(
        (room_of(one) or "").startswith("annex.") for one in imports_of(path.read_text())
    )]  # fmt: skip


def main() -> None:
    """Print the figures."""
    library, jobs = written(LIBRARY.rglob("*.py")), sorted(JOBS.glob("*.py"))
    tests = sorted((REPOSITORY / "tests").rglob("*.py"))
    code = [*library, *jobs]
    texts = [path.read_text() for path in code]
    decisions = sorted((REPOSITORY / "docs" / "decisions").glob("*.md"))
    pages = [
        path for path in [*(REPOSITORY / "docs").glob("*.md"), REPOSITORY / "README.md"]
        if str(path.relative_to(REPOSITORY)) not in _GENERATED
    ]  # fmt: skip
    rooms = {room: lines(written(files_of(room))) for room in ORDER}
    for room in ORDER:
        print(f"{rooms[room]:7,}  {room}, floor {floor(room)}")
    row = {
        "library and jobs, lines": lines(code),
        "spark and kernel, lines": sum(
            n for room, n in rooms.items() if room.split(".")[0] in ("spark", "kernel")
        ),
        "tests, lines": lines(tests),
        "tests/spark, lines": lines(one for one in tests if "tests/spark/" in str(one)),
        "sql, lines": lines((REPOSITORY / "sql").rglob("*.sql")),
        "of the core, lines": lines(code) - lines(of_annexes(jobs)) - sum(
            n for room, n in rooms.items() if room.split(".")[0] in _BESIDE
        ),
        "rooms": len(ORDER), "floors": 1 + max(map(floor, ORDER)), "of the core": core_floors(),
        "statements of SQL in Python": sum(map(statements, texts)),
        "Any": sum(len(re.findall(r"\bAny\b", text)) for text in texts),
        "files above 400 lines": sum(len(text.splitlines()) > 400 for text in texts),
        "pages written by hand, words": words(pages),
        "decisions": len(decisions), "decisions, words": words(decisions),
    }  # fmt: skip
    for what, count in row.items():
        print(f"{count:7,}  {what}")


if __name__ == "__main__":
    main()
