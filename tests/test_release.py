"""`make release` refuses what is not ready, and builds what is."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.release import composed, frozen, missing, wheel

ROOT = Path(__file__).parents[1]


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=test", "-c", "user.email=test@localhost")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


def commit(root: Path) -> None:
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message", "ready")


@pytest.fixture
def ready(tmp_path: Path) -> Path:
    """A tree of this version with all that its release needs, committed."""
    root = tmp_path / "ready"
    root.mkdir()
    for name in ("plugins", "spark_jobs", "dags", "examples", "sql"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", "SECURITY.md", ".gitignore"):
        shutil.copy(ROOT / name, root)
    (root / "CHANGELOG.md").write_text("# Changelog\n\n## 0.1.0 - 2026-12-01\n")
    frozen(root).write_text(composed(root))
    seed = root / "tests" / "sql" / "seeds" / "0.1.0.sql.gz"
    seed.parent.mkdir(parents=True)
    seed.touch()
    git(root, "init", "--quiet", "--initial-branch", "master")
    commit(root)
    return root


def rewritten(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        text = (root / name).read_text()
        assert old in text
        (root / name).write_text(text.replace(old, new))
        commit(root)

    return change


def removed(name: Callable[[Path], str]) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        git(root, "rm", "-q", name(root))
        commit(root)

    return change


NOT_READY: dict[str, Callable[[Path], object]] = {
    "changes without a commit": lambda root: (root / "README.md").write_text("other"),
    "the tag v0.1.0 exists": lambda root: git(root, "tag", "v0.1.0"),
    "weir.__version__ does not": rewritten("plugins/weir/__init__.py", '"0.1.0"', '"0.1.1"'),
    "does not begin with 0.1.0": rewritten("CHANGELOG.md", "2026-12-01", "unreleased"),
    "SECURITY.md does not say": rewritten("SECURITY.md", "| 0.1 |", "| 0.0 |"),
    "not frozen": removed(lambda root: str(frozen(root))),
    "freeze it again": rewritten("sql/schema/01_installation.sql", "CREATE TABLE", "create TABLE"),
    "no seed of 0.1.0": removed(lambda _: "tests/sql/seeds/0.1.0.sql.gz"),
}


def test_release_names_each_thing_that_is_missing_and_nothing_else(ready: Path) -> None:
    assert list(missing(ready)) == []
    for says, change in NOT_READY.items():
        git(ready, "switch", "--quiet", "--detach", "--discard-changes", "master")
        change(ready)
        (found,) = missing(ready)
        assert says in found
        if "tag" in says:
            git(ready, "tag", "--delete", "v0.1.0")


@pytest.mark.release
def test_the_wheel_of_a_commit_is_installed_alone_and_says_its_version(ready: Path) -> None:
    (ready / "README.md").write_text("not committed, so not in it")
    made = wheel(ready)
    assert made.parent == ready / "dist"
    assert made.name.startswith("weir_streams-0.1.0-")
