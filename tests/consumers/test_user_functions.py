"""What a consumer's `module:function` may name."""

import json
import sys
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import text

import weir
from tests.raises import raises
from weir.consumers.user_functions import check_function_name, find_function, load_function
from weir.database.connection import Database
from weir.model.names import FUNCTION_PATTERN
from weir.operations.action import Job
from weir.operations.form import TEXTS
from weir.operations.jobs import ACTIONS
from weir.operations.runner import by_hand, perform, record_failure
from weir.settings import Settings, load

REPOSITORY = Path(__file__).parents[2]
SHOP = """
import functools
from functools import reduce
from pathlib import Path

def late(events, minutes=60):
    return events

later = functools.partial(late, minutes=90)
made = functools.lru_cache(late)

class Keeps:
    def __call__(self, events):
        return events

keeps = Keeps()
count = 3
shorter = functools.partial(reduce)
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A package `shop_of_test` that functions may come from."""
    package = tmp_path / "shop_of_test"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "orders.py").write_text(SHOP)
    (package / "again.py").write_text("from shop_of_test.orders import late")
    monkeypatch.syspath_prepend(str(tmp_path))
    for loaded in [one for one in sys.modules if one.startswith(package.name)]:
        monkeypatch.delitem(sys.modules, loaded)  # of another test
    return package.name


def test_what_a_package_defines_is_a_function_of_it_wherever_in_it_it_is_named(shop: str) -> None:
    for name in ("orders:late", "orders:later", "orders:made", "orders:keeps", "again:late"):
        assert load_function(f"{shop}.{name}", [shop])("events") == "events"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Path", "function_not_allowed imported 'pathlib' define"),
        ("reduce", "function_not_allowed imported '_functools' define"),
        ("functools", "function_not_loadable function"),
        ("shorter", "function_not_allowed imported '_functools' define"),
        ("count", "function_not_loadable function"),
        ("nothing", "function_not_loadable orders.py 'nothing'"),
        ("lat", "function_not_loadable orders.py 'lat' 'late'"),
    ],
)
def test_what_a_module_has_only_imported_is_not(shop: str, name: str, says: str) -> None:
    with raises(says):
        load_function(f"{shop}.orders:{name}", [shop])


@pytest.mark.parametrize("name", ["late", "a:b:c", "shop.orders", "os:system; x", ""])
def test_what_is_no_name_of_a_function_is_not_imported(name: str) -> None:
    with raises(f"function_invalid '{name}' module:function"):
        load_function(name, ["shop"])


def test_a_package_that_is_not_allowed_is_not_imported() -> None:
    with raises("function_not_allowed 'os:system' shop function_packages"):
        load_function("os:system", ["shop"])


def test_the_example_in_the_refusal_of_a_name_is_there() -> None:
    example = TEXTS[FUNCTION_PATTERN].rpartition(" ")[2]
    assert callable(load_function(example, ["flights"]))


Folders = Callable[..., tuple[str, str]]


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    """Return what makes two folders with these files, the first one first on Python's path."""

    def make(first: str, second: str) -> tuple[str, str]:
        for name, files in (("first", first), ("second", second)):
            (tmp_path / name).mkdir()
            for file in files.split():
                path = tmp_path / name / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"def where(events):\n    return {name!r}\n")
        found = str(tmp_path / "first"), str(tmp_path / "second")
        monkeypatch.setattr(sys, "path", [*found, *sys.path])
        for loaded in [one for one in sys.modules if one.startswith("twice")]:
            monkeypatch.delitem(sys.modules, loaded)
        return found

    return make


@pytest.mark.parametrize(
    ("first", "second", "module"),
    [
        ("twice.py", "twice.py", "twice"),
        ("twice.py", "twice/__init__.py", "twice"),
        ("twice/__init__.py", "twice.py", "twice"),
        ("twice/__init__.py", "twice/__init__.py twice/orders.py", "twice.orders"),
        ("twice/orders.py", "twice.py", "twice"),
        ("twice/orders.py", "twice/orders.py", "twice.orders"),
    ],
)
def test_a_module_that_is_in_two_folders_is_refused_with_both_paths(
    folders: Folders, first: str, second: str, module: str
) -> None:
    both = folders(first, second)
    if (first, second) == ("twice/orders.py", "twice.py"):  # a folder of anything is no module
        assert load_function(f"{module}:where", ["twice"], both)(None) == "second"
        return
    with raises(f"function_invalid '{module}' {both[0]}/twice {both[1]}/twice"):
        load_function(f"{module}:where", ["twice"], both)
    assert "twice" not in sys.modules, "nothing was imported"
    if module == "twice":
        assert callable(load_function(f"{module}:where", ["twice"], [both[0], both[0]]))


def test_folders_in_folders_without_files_of_their_own_are_packages(folders: Folders) -> None:
    both = folders("twice/deep/deeper/orders.py", "twice/other/orders.py")
    for module, where in (("twice.deep.deeper.orders", "first"), ("twice.other.orders", "second")):
        assert load_function(f"{module}:where", ["twice"], both)(None) == where


def test_a_module_that_python_knows_from_elsewhere_is_not_called_instead(folders: Folders) -> None:
    both = folders("json.py twice.py", "")
    with raises(f"function_invalid 'json:where' {both[0]}/json.py {json.__file__}"):
        load_function("json:where", ["json"], both)
    with raises(f"function_invalid 'sys:where' {both[0]}/sys.py"):
        Path(both[0], "sys.py").touch()
        load_function("sys:where", ["sys"], both)


def test_a_name_may_be_allowed_for_one_module_of_a_package() -> None:
    assert check_function_name("shop.orders:late", ["shop.orders"])
    assert check_function_name("shop.orders.sums:late", ["shop.orders"])
    for name in ("shop:late", "shop.order:late", "shop.orders2:late", "shopping:late"):
        with raises(f"function_not_allowed '{name}'"):
            check_function_name(name, ["shop.orders"])


def test_no_package_is_allowed_until_somebody_names_it(tmp_path: Path) -> None:
    assert Settings().function_packages == ()
    assert load({"WEIR_CONFIG": str(REPOSITORY / "weir.toml")}).function_packages == ()
    (tmp_path / "weir.toml").touch()
    assert load({"WEIR_CONFIG": str(tmp_path / "weir.toml")}).function_packages == ()


def test_a_job_records_which_file_of_which_version_it_called(
    shop: str, database: Database, settings: Settings, tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    allowed = replace(settings, function_packages=(shop,), function_path=(str(tmp_path),))
    name, file = f"{shop}.orders:late", str(tmp_path / shop / "orders.py")

    def call(job: Job, arguments: object) -> dict[str, object]:
        job.function(name)("events")
        if arguments.dry_run:  # type: ignore[attr-defined]
            raise ValueError("my own mistake")
        return {"done": 1}

    for dry_run in (False, True):
        job = Job("retention", by_hand("retention"), allowed, database)
        try:
            perform(
                job,
                replace(ACTIONS[job.name], run=call, said=lambda *_: "done"),
                {"dry_run": dry_run},
            )
        except ValueError as error:
            record_failure(job, error)
    said = capsys.readouterr().out
    assert said.count(f"function {name} of {file}, version ") == 2
    rows = database.snapshot(lambda c: c.execute(text("SELECT report FROM weir.job_runs")).all())
    assert len(rows) == 2
    for row in rows:
        [called] = row.report["functions"]
        assert (called["name"], called["file"]) == (name, file)
        assert f"version {called['version']}" in said


DECLARING = """
import functools
import os
import weir

@weir.declares
def declared():
    return {"streams": {"shop/orders": {"routing_key": "customer"}}}

def main():
    raise SystemExit("everything is deleted")

def weir_declares():
    main()

class Anything:
    def __getattr__(self, name):
        return True
    def __call__(self):
        main()

anything = Anything()
imported = os.getcwd
later = functools.partial(main)
"""


def test_only_a_function_that_is_marked_as_declaring_may_be_named_as_a_file(
    database: Database, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "declaring_of_test.py").write_text(DECLARING)
    monkeypatch.syspath_prepend(str(tmp_path))
    allowed = replace(settings, function_packages=("declaring_of_test", "flights"))

    def apply(name: str) -> dict[str, object]:
        job = Job("apply", by_hand("apply"), allowed, database)
        return perform(job, ACTIONS["apply"], {"file": name, "dry_run": True})

    assert apply("declaring_of_test:declared")["unchanged"] == 0
    for name in ("main", "weir_declares", "anything", "Anything", "later"):
        with raises(f"function_invalid 'declaring_of_test:{name}' @weir.declares"):
            apply(f"declaring_of_test:{name}")
    with raises("function_invalid 'flights.demo:main' marked"):
        apply("flights.demo:main")
    assert callable(weir.declares(test_no_package_is_allowed_until_somebody_names_it))


def test_no_form_of_the_demo_can_name_what_deletes_its_installation() -> None:
    demo = REPOSITORY / "examples" / "flights"
    allowed = tomllib.loads((demo / "weir.toml").read_text())["function_packages"]
    for name in ("demo:main", "demo:begun_anew", "demo:_remove", "runs:main", "input:main"):
        with raises(f"function_not_allowed 'flights.{name}'"):
            check_function_name(f"flights.{name}", allowed)
    for package in allowed:
        source = (demo / f"{package.removeprefix('flights.')}.py").read_text()
        assert not {"shutil", "subprocess", "weir.local"} & set(source.split()), package


def test_a_function_is_looked_for_where_its_module_binds_it(shop: str, tmp_path: Path) -> None:
    within = "class Totals:\n    def of(events):\n        total = events\n        return total\n"
    (tmp_path / shop / "totals.py").write_text(f"{within}\nif True:\n    last = Totals()\n")
    (tmp_path / shop / "made.py").write_text("def make():\n    global later\n    later = make\n")
    for there in (f"{shop}.totals:last", f"{shop}.totals:Totals", f"{shop}.made:later"):
        find_function(there, [shop])
    for missing in ("of", "total"):
        with raises(f"function_not_loadable totals.py {missing}"):
            find_function(f"{shop}.totals:{missing}", [shop], elsewhere=True)
    find_function(f"{shop}.none:of", [shop], elsewhere=True)
    with raises("function_not_loadable named"):
        find_function(f"{shop}.none:of", [shop])
