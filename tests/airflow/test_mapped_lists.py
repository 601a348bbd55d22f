"""Task instances of Airflow are mapped over a list that is another one when they are cleared."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import weir
from tests.airflow.worker import REPOSITORY
from tests.crash.jobs import write_config
from weir.settings import Settings


@pytest.mark.release
@pytest.mark.timeout(300)
def test_a_list_that_is_made_anew_is_appended_once(settings: Settings, tmp_path: Path) -> None:
    with weir.open(settings=settings) as store:
        store.create_stream("test/mapped", "item")
    dags = tmp_path / "dags"
    dags.mkdir()
    file = shutil.copy(Path(__file__).with_name("mapped_lists.py"), dags)
    environment = {
        **os.environ, "AIRFLOW_HOME": str(tmp_path), "WEIR_CONFIG": str(write_config(settings)),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "PYTHONPATH": f"{REPOSITORY}/plugins:{REPOSITORY}/examples",
    }  # fmt: skip
    lists = [["a", "b", "c"], ["z", "a", "b", "c"], ["c", "a"]]
    done = subprocess.run(
        [sys.executable, file, *map(json.dumps, lists)],
        cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith("> ")]
    assert len(told) == 3, done.stdout + done.stderr
    assert len({one["run"] for one in told}) == 1
    for one in told:
        assert set(one["states"].values()) <= {"success", "removed"}, done.stdout + done.stderr
    with weir.open(settings=settings) as store:
        items = store.read("test/mapped")["item"].to_pylist()
    wanted = {f"{how} {name.upper() if how == 'inner' else name}": 10
              for how in ("plain", "given", "inner", "each") for name in "abcz"}  # fmt: skip
    assert {one: items.count(one) for one in set(items)} == wanted
