"""Choose the tests that a change can break, by the order of the rooms that the contract holds.

A room imports from the rooms below it only and reads and writes only their tables and its own, so a
change in a room concerns its own tests and those of the rooms above it. What this module doesn't
know concerns all tests. `make test-changed` plays what `python -m tests.changed` prints.
"""

import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from tests.rooms import (
    JOBS,
    ORDER,
    PLUGINS,
    REPOSITORY,
    files_of,
    imported_by,
    imports_of,
    modules,
    room_of,
    shown,
)

EVERYTHING = frozenset({"tests"})
ALWAYS = "tests/test_import_contract.py"
FINDER = "weir.operations.jobs"  # loads the jobs, which lie above it
# What stands on all rooms concerns the tests that name it.
NAMED = "docs README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md examples benchmarks".split()


@cache
def modules_of_tests() -> dict[str, Path]:
    """The files below tests/, by the names under which they are imported."""
    return {
        ".".join(path.relative_to(REPOSITORY).with_suffix("").parts): path
        for path in sorted((REPOSITORY / "tests").rglob("*.py"))
    }


@cache
def files_with_tests() -> frozenset[str]:
    """The files with tests."""
    return frozenset(
        shown(path) for path in modules_of_tests().values() if path.name.startswith("test_")
    )


def is_ground(file: str) -> bool:
    """Whether a file of tests is what all tests stand on: tests/world, and what lies beside the
    folders. A change of it plays everything; what it imports tells nothing of who uses it."""
    parts = Path(file).parts
    return parts[1] == "world" or (len(parts) == 2 and file not in files_with_tests())


@cache
def ground() -> frozenset[str]:
    """The modules of the library that give all tests their database and their session."""
    return frozenset(imported_by((REPOSITORY / "tests/conftest.py").read_text(), modules()))


@cache
def used_by(file: str) -> frozenset[str]:
    """The files of tests/ above the ground that one of them needs: itself, what it imports, and the
    conftest.py beside it."""
    known = modules_of_tests()
    found: set[str] = set()
    beside = (REPOSITORY / file).with_name("conftest.py")
    ahead = [file, *([shown(beside)] if beside.exists() else [])]
    while ahead:
        if (one := ahead.pop()) in found or is_ground(one):
            continue
        found.add(one)
        text = (REPOSITORY / one).read_text()
        ahead += [shown(known[name]) for name in imported_by(text, known)]
    return frozenset(found)


@cache
def height_of(file: str) -> int:
    """How high in the order of rooms a file of tests reaches: as its folder's room with the rooms
    in it, or as the highest that it or what it needs imports. A folder that is no room is above
    all of them."""
    folder = Path(file).parts[1]
    rooms = [room for room in ORDER if room.split(".")[0] == folder]
    if not rooms:
        return len(ORDER)
    for one in used_by(file):
        imported = set(imports_of((REPOSITORY / one).read_text())) - ground()
        rooms += [room for room in map(room_of, imported) if room is not None]
        if FINDER in imported:
            rooms.append(JOBS.name)
    return max(map(ORDER.index, rooms))


def from_room(height: int) -> frozenset[str]:
    """The tests of a room and of the rooms above it."""
    return frozenset(one for one in files_with_tests() if height_of(one) >= height)


def concerned_by(file: str) -> frozenset[str]:
    """The files with tests that a change of a file of the repository can break."""
    path = REPOSITORY / file
    if not path.exists() and path.suffix == ".py":
        return EVERYTHING  # what it was is not told by its name
    folder = Path(file).parts[0]
    if path.is_relative_to(PLUGINS / "weir"):
        module = ".".join(path.relative_to(PLUGINS).with_suffix("").parts)
        room = room_of(module.removesuffix(".__init__"))
        if room is not None and path in files_of(room):
            return from_room(ORDER.index(room))
    elif path in files_of(JOBS.name):
        return from_room(ORDER.index(JOBS.name))
    elif folder == "dags":  # where Airflow finds what its room makes
        return from_room(ORDER.index("airflow"))
    elif folder == "tests":
        return _of_tests(file)
    elif folder in NAMED:
        named = Path(folder).stem
        return frozenset(
            one for one in files_with_tests() if named in (REPOSITORY / one).read_text()
        )
    return EVERYTHING


def _of_tests(file: str) -> frozenset[str]:
    """The file itself if it has tests, and those that need it; of a file that is no Python, what is
    in its folder."""
    if is_ground(file):
        return EVERYTHING
    if file.endswith(".py"):
        return frozenset(one for one in files_with_tests() if file in used_by(one))
    return frozenset(
        one for one in files_with_tests() if one.startswith(f"tests/{Path(file).parts[1]}/")
    )


def chosen(changed: Iterable[str]) -> list[str]:
    """What to hand to pytest for a change of these files: `tests`, or the files with tests."""
    found = frozenset({ALWAYS}).union(*map(concerned_by, changed))
    return sorted(EVERYTHING if found >= EVERYTHING else found)


def changed_since(base: str, repository: Path = REPOSITORY) -> list[str]:
    """The files that differ from where this branch left `base`, committed or not."""

    def git(*arguments: str) -> list[str]:
        done = subprocess.run(
            ["git", *arguments], cwd=repository, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.splitlines()

    (left,) = git("merge-base", base, "HEAD")
    new = git("ls-files", "--others", "--exclude-standard")
    return sorted({*git("diff", "--name-only", "--no-renames", left), *new})


def main() -> None:
    """Print what to hand to pytest for what was changed since a commit or a branch."""
    files = changed_since(sys.argv[1] if len(sys.argv) > 1 else "main")
    to_play = chosen(files)
    share = "all" if to_play == ["tests"] else f"{len(to_play)} of {len(files_with_tests())}"
    print(f"{len(files)} files changed; {share} files of tests.", file=sys.stderr)
    print(*to_play)


if __name__ == "__main__":
    main()
