"""requirements.txt pins everything, and what is installed is what it says, file by file."""

import base64
import hashlib
import importlib
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pyspark
import pytest

REPOSITORY = Path(__file__).parents[1]
PINNED = [
    line
    for line in (REPOSITORY / "requirements.txt").read_text().splitlines()
    if line.strip() and not line.lstrip().startswith("#")
]
VERSIONS = {
    normal.group(1): normal.group(2)
    for normal in (re.match(r"([a-z0-9-]+)(?:\[[^]]*\])?==([^\s;]+)", line) for line in PINNED)
    if normal
}


def wanted() -> dict[str, str]:
    """What requirements.in asks for: the rest of the line by normalised name."""
    lines = (REPOSITORY / "requirements.in").read_text().splitlines()
    stripped = [line.split("#")[0].strip() for line in lines]
    found = [re.match(r"([A-Za-z0-9._-]+)(.*)", line) for line in stripped if line]
    assert all(found)
    return {re.sub(r"[._-]+", "-", m[1]).lower(): m[2].strip() for m in found if m}


def test_every_requirement_is_pinned_to_one_version() -> None:
    loose = [line for line in PINNED if not re.match(r"[a-z0-9-]+(\[[^]]*\])?==[^\s;*]+", line)]
    assert loose == []
    assert len(PINNED) > 100


def test_every_name_of_requirements_in_is_locked_as_it_asks() -> None:
    for name, asked in wanted().items():
        assert name in VERSIONS, f"{name} is missing: run make lock"
        if asked.startswith("=="):
            assert asked == f"=={VERSIONS[name]}", f"{name} is locked to another: run make lock"


def test_pyspark_and_its_client_are_one_version() -> None:
    versions = {
        pyspark.__version__,
        importlib.import_module("pyspark.version").__version__,
        metadata.version("pyspark"),
        metadata.version("pyspark-client"),
        VERSIONS["pyspark"],
        VERSIONS["pyspark-client"],
    }
    assert len(versions) == 1, versions


def test_the_common_files_of_pyspark_and_its_client_are_the_same_and_on_disk() -> None:
    """Both packages install them, so the one installed last has won."""
    hashes = [
        {str(file): file.hash.value for file in metadata.files(name) or () if file.hash}
        for name in ("pyspark", "pyspark-client")
    ]
    common = [file for file in hashes[0].keys() & hashes[1].keys() if file.startswith("pyspark/")]
    assert len(common) > 300
    different = [file for file in common if hashes[0][file] != hashes[1][file]]
    assert different == []
    site = Path(pyspark.__file__).parents[1]
    changed = []
    for file in common:
        digest = hashlib.sha256((site / file).read_bytes()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != hashes[0][file]:
            changed.append(file)
    assert changed == []


def test_pandas_is_one_that_pyspark_knows() -> None:
    assert int(metadata.version("pandas").split(".")[0]) < 3
    assert wanted()["pandas"] == "<3"


@pytest.mark.parametrize("name", sorted(wanted()))
def test_what_is_installed_is_what_is_locked(name: str) -> None:
    assert metadata.version(name) == VERSIONS[name]


def test_the_package_asks_for_versions_that_are_locked() -> None:
    project = (REPOSITORY / "pyproject.toml").read_text()
    asked = re.findall(r'"([a-z0-9-]+)==([^"]+)"', project)
    assert {name for name, _ in asked} >= {"pyspark", "apache-airflow"}
    for name, version in asked:
        assert VERSIONS[name] == version, name


def test_what_the_package_depends_on_is_asked_for_here_too() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = [one for some in project["optional-dependencies"].values() for one in some]
    asked = {re.split("[=<>]", one)[0] for one in [*project["dependencies"], *extras]}
    assert asked <= wanted().keys()
