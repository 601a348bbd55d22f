"""Functions of a user make the keys and values of a store, and other code makes them anew."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.errors import PythonException

from tests.spark.adjunct_world import Way, World
from tests.spark.installation import Installation
from weir.adjunct.builds import stores_to_build
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.spark.adjuncts.build import build_stores, with_other_code

MODULE = """
import pyarrow as pa
import pyarrow.compute as pc

def keys(events):
    if "poison" in events.column("op").to_pylist():
        raise ValueError("poison")
    if "away" in events.column("op").to_pylist():
        raise ConnectionRefusedError("the service is away")
    return pc.utf8_upper(events.column("k"))

def values(events):
    n = pc.multiply(events.column("n"), FACTOR)
    return pa.StructArray.from_arrays([n], names=["n"], mask=pc.equal(events.column("op"), "d"))
"""
OF_FUNCTIONS = Way(
    AdjunctDefinition(
        key="adjunct_functions:keys", key_type="STRING", value="adjunct_functions:values",
        value_columns="n BIGINT",
    ),
    lambda e: None if e.op == "poison" else e.k and e.k.upper(),
    lambda e: None if e.op == "d" else (e.n * 2,),
)  # fmt: skip


@pytest.fixture
def functions(weir: Installation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "adjunct_functions.py"
    file.write_text(MODULE.replace("FACTOR", "2"))
    weir.settings = replace(
        weir.settings, function_path=(str(tmp_path),), function_packages=("adjunct_functions",)
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "adjunct_functions", raising=False)
    return file


def test_functions_make_keys_and_values_and_other_code_makes_them_anew(
    weir: Installation, functions: Path
) -> None:
    world = World.made(weir)
    rows = [("a", 1, "u"), ("b", 2, "u"), ("A", 3, "u"), (None, 4, "u"), ("x", 5, "poison")]
    world.append(rows)
    store = world.store(OF_FUNCTIONS, on_error="skip")
    assert store.found(store.build()) == store.expected() == {"A": (6,), "B": (4,)}
    world.append([("b", 2, "d"), ("c", 6, "u")])
    assert store.found(store.build()) == store.expected()

    def waiting() -> list[str]:
        names, built_with = weir.database.transaction(lambda c: stores_to_build(c, [store.name]))
        return [*names, *with_other_code(weir.database, weir.settings, built_with)]

    assert waiting() == []
    functions.write_text(MODULE.replace("FACTOR", "3"))
    assert waiting() == [store.name]
    version = store.build()
    kinds = weir.query(
        "SELECT kind FROM adjunct_version WHERE store_id = :a ORDER BY version", a=version.store_id
    )
    assert [row.kind for row in kinds] == ["rebuilt", "extended", "rebuilt"]
    assert version.rows == 2


@pytest.mark.release
def test_a_service_that_is_away_skips_no_event(weir: Installation, functions: Path) -> None:
    world = World.made(weir)
    store = world.store(OF_FUNCTIONS, on_error="skip")
    world.append([("d", 7, "away")])
    with pytest.raises(PythonException, match="the service is away"):
        store.build()
    [report] = build_stores(weir.opened, [store.name])
    assert "the service is away" in report["error"]
    assert report["error"].endswith("[adjunct_build_failed]")
