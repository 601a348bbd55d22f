"""The DAGs that README.md and docs/consumers.md show are ones that Airflow takes."""

import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import BundleDagBag

from weir.airflow import ProcessOperator, stream_asset
from weir.operations.form import parse
from weir.operations.jobs import FORMS

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^( *)```python[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
SHOWN = {
    "README.md": ["shop/sales", "shop/orders"],
    "docs/consumers.md": ["nyc/flights", "nyc/flights"],
}


def dags(page: str) -> list[str]:
    """Its blocks with a DAG; one without imports has those of the block before."""
    imports = ""
    found = []
    for _, block in BLOCK.findall((ROOT / page).read_text()):
        code = textwrap.dedent(block)
        if "with DAG(" in code:
            if "import" not in code:
                code = imports + code
            imports = "".join(line for line in code.splitlines(True) if "import" in line)
            found.append(code)
    return found


def arguments_of(task: Any) -> list[Any]:
    """Of a task, or of each that it is mapped to."""
    if not task.is_mapped:
        return [task.arguments]
    [(name, values)] = task.expand_input.value.items()
    return [task.unmap({name: value}).arguments for value in values]


@pytest.mark.parametrize("page", SHOWN)
def test_the_dags_that_are_shown_are_read_and_their_arguments_taken(
    page: str, tmp_path: Path
) -> None:
    for stream, code in zip(SHOWN[page], dags(page), strict=True):
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        (folder / "shown.py").write_text(code)
        bag = BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="shown")
        assert (bag.import_errors, bag.captured_warnings) == ({}, {})
        [dag] = bag.dags.values()
        assert stream_asset(stream).uri in str(dag.timetable.asset_condition)
        [task] = dag.tasks
        assert (task.operator_class if task.is_mapped else type(task)) is ProcessOperator
        for arguments in arguments_of(task):
            parse(FORMS["process"], arguments)
        assert all(one["readers"] == len(arguments_of(task)) for one in arguments_of(task)
                   if "readers" in one)  # fmt: skip
