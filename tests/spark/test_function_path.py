"""A function is looked for in the folders that the settings name when its job starts."""

import json
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import weir
from tests.crash.jobs import ROOT, Process, write_config
from tests.raises import raises
from tests.world.streams import unique
from weir.consumers.user_functions import load_function
from weir.operations.jobs import ACTIONS
from weir.settings import Settings

MODULE = """
from pyspark.sql import functions as F

from HELPER import factor

def times(n):  # which Python imports by its name, where it computes
    return n * factor

def totals(events):
    return events.select(F.udf(times, "long")("n").alias("n"))
"""


@pytest.fixture
def name() -> str:
    """A name of a module that nobody has loaded."""
    return unique("late_shop").replace("-", "_")


def test_a_function_that_was_written_later_is_found_in_its_folder_and_in_no_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, here = tmp_path / "functions", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    (here / f"{name}.py").write_text("def totals(orders): return 'here'\n")
    with raises(f"function_not_loadable {name}"):
        load_function(f"{name}:totals", [name], [str(folder)])
    (folder / name).mkdir()
    (folder / name / "__init__.py").write_text("def totals(orders): return 'functions'\n")
    with raises("function_not_allowed"):
        load_function(f"{name}:totals", ["other"], [str(folder)])
    assert load_function(f"{name}:totals", [name], [str(folder)])(None) == "functions"


@pytest.mark.timeout(300)
def test_a_job_and_the_python_of_its_executors_find_a_function_by_the_settings_alone(
    name: str, settings: Settings, tmp_path: Path
) -> None:
    functions = tmp_path / "functions"
    functions.mkdir()
    (functions / f"{name}.py").write_text(MODULE.replace("HELPER", f"{name}_more"))
    (functions / f"{name}_more.py").write_text("factor = 3\n")
    config = write_config(settings, function_path=[str(functions)], function_packages=[name])
    group = unique("totals")
    with weir.open(settings=settings) as store:
        store.create_stream(f"test/{group}", "k")
        store.append(f"test/{group}", [{"k": "a", "n": 2}])
        store.create_reader_group(group, [f"test/{group}"])
    given = {"reader_group": group, "function": f"{name}:totals", "outputs": [f"parquet:{group}"]}
    command = [sys.executable, ACTIONS["process"].file, "--arguments", json.dumps(given)]
    job = Process(command, config, PYTHONPATH=f"{ROOT}/plugins")
    assert job.wait() == 0, job.said
    found = pq.read_table(Path(settings.output_roots[0]) / group, columns=["n"])
    assert found["n"].to_pylist() == [6]
