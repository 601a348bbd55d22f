"""What a consumer's `module:function` may name."""

from pathlib import Path

import pytest

from tests.raises import raises
from weir.operations import FUNCTION_PATTERN
from weir.operations.form import _TEXTS
from weir.spark.user_functions import load_function

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
        ("nothing", "function_not_loadable 'nothing' function_path"),
    ],
)
def test_what_a_module_has_only_imported_is_not(shop: str, name: str, says: str) -> None:
    with raises(says):
        load_function(f"{shop}.orders:{name}", [shop])


@pytest.mark.parametrize("name", ["late", "a:b:c", "shop.orders", "os:system; x", ""])
def test_what_is_no_name_of_a_function_is_not_imported(name: str) -> None:
    with raises(f"function_name_invalid '{name}' module:function"):
        load_function(name, ["shop"])


def test_a_package_that_is_not_allowed_is_not_imported() -> None:
    with raises("function_not_allowed 'os:system' shop function_packages"):
        load_function("os:system", ["shop"])


def test_the_example_in_the_refusal_of_a_name_is_there() -> None:
    example = _TEXTS[FUNCTION_PATTERN].rpartition(" ")[2]
    assert callable(load_function(example, ["flights"]))
