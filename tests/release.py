"""What `make release` checks: `python -m tests.release` says what keeps the commit from being
released; `--wheel` builds it as well, in dist/, and installs it elsewhere; `--freeze` writes the
tables that version 0.1.0 begins with."""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

from weir.database.definitions import files

ROOT = Path(__file__).parents[1]
FIRST = "0.1.0"


def run(*command: str | Path, cwd: Path) -> str:
    """Return what a command prints. Raises CalledProcessError if it fails."""
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, check=True, stdout=subprocess.PIPE, text=True
    )
    return done.stdout.strip()


def frozen(root: Path) -> Path:
    """Return the file with the tables of the first version."""
    return root / "sql" / "migrations" / "versions" / f"{FIRST}_baseline.sql"


def composed(root: Path) -> str:
    """Return the tables of the folders `schema` in one text."""
    return "\n".join(path.read_text() for path in files(root / "sql", "schema"))


def version_of(root: Path) -> str:
    return str(tomllib.loads((root / "pyproject.toml").read_text())["project"]["version"])


def missing(root: Path) -> Iterator[str]:
    """Yield a sentence for each thing that keeps a tree from being released."""
    version = version_of(root)
    if changes := run("git", "status", "--porcelain", cwd=root):
        yield f"there are changes without a commit:\n{changes}"
    if run("git", "tag", "--list", f"v{version}", cwd=root):
        yield f"the tag v{version} exists; a version is released once."
    module = (root / "plugins" / "weir" / "__init__.py").read_text()
    if f'__version__ = "{version}"' not in module:
        yield f"pyproject.toml says {version}, and weir.__version__ does not."
    newest = re.search(r"^## .*$", (root / "CHANGELOG.md").read_text(), re.M)
    if newest is None or not re.fullmatch(rf"## {version} - \d{{4}}-\d\d-\d\d", newest[0]):
        yield f"CHANGELOG.md does not begin with {version} and the day of its release."
    series = version.rpartition(".")[0]
    if not re.search(rf"^\| {re.escape(series)} \|", (root / "SECURITY.md").read_text(), re.M):
        yield f"SECURITY.md does not say how long {series} is supported."
    if not frozen(root).is_file():
        yield "the first layout is not frozen; run `python -m tests.release --freeze`."
    elif version == FIRST and frozen(root).read_text() != composed(root):
        yield "sql/schema has changed since the first layout was frozen; freeze it again."
    if not (root / "tests" / "sql" / "seeds" / f"{version}.sql.gz").is_file():
        yield f"there is no seed of {version} to migrate later; run `python -m tests.sql.seed`."


def wheel(root: Path) -> Path:
    """Build the wheel of what is committed, in dist/, and install it alone. Raises
    CalledProcessError if that fails, and ValueError if what is installed is another version."""
    with tempfile.TemporaryDirectory() as folder:
        source, home = Path(folder) / "source", Path(folder) / "venv"
        source.mkdir()
        run("git", "archive", "--output", f"{folder}/source.tar", "HEAD", cwd=root)
        run("tar", "-xf", f"{folder}/source.tar", "-C", source, cwd=root)
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source,
            cwd=root)  # fmt: skip
        (built,) = Path(folder).glob("*.whl")
        uv = Path(sys.executable).parent / "uv"
        run(uv, "venv", "--quiet", "--python", sys.executable, home, cwd=root)
        run(uv, "pip", "install", "--quiet", "--python", home / "bin" / "python", built, cwd=root)
        said = run(home / "bin" / "weir", "--version", cwd=Path(folder))
        if version_of(root) not in said.split():
            raise ValueError(f"the wheel of {version_of(root)} says that it is {said}")
        (root / "dist").mkdir(exist_ok=True)
        return built.rename(root / "dist" / built.name)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.release", description=__doc__)
    parser.add_argument("--freeze", action="store_true")
    parser.add_argument("--wheel", action="store_true")
    given = parser.parse_args()
    if given.freeze:
        frozen(ROOT).write_text(composed(ROOT))
        return
    found = list(missing(ROOT))
    if found:
        sys.exit("\n".join(f"not ready: {one}" for one in found))
    if given.wheel:
        name, version = wheel(ROOT), version_of(ROOT)
        print(f"{name} is built; now: git tag --annotate v{version} --message 'Weir {version}'")


if __name__ == "__main__":
    main()
