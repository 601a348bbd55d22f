"""The DAGs that the pages show are ones that Airflow takes, with the assets of streams."""

from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import BundleDagBag

from tests.documents.blocks import PAGES, blocks
from weir.airflow import ProcessOperator, stream_asset
from weir.operations.form import parse
from weir.operations.jobs import FORMS

MARK = "airflow"
STREAMS = {  # whose appends start the DAGs of a page that have no other schedule
    "README.md": ["shop/sales", "shop/orders"],
    "docs/consumers.md": ["nyc/flights", "nyc/flights"],
}


def shown(page: str) -> list[str]:
    """The blocks that are files of DAGs; one without imports has those of the block before."""
    imports = ""
    found = []
    for block in blocks(page):
        if block.mark == MARK:
            code = block.text if "import" in block.text else imports + block.text
            imports = "".join(line for line in code.splitlines(True) if "import" in line)
            found.append(code)
    return found


def arguments_of(task: Any) -> list[Any]:
    """Of a task, or of each that it is mapped to."""
    if not task.is_mapped:
        return [task.arguments]
    [(name, values)] = task.expand_input.value.items()
    return [task.unmap({name: value}).arguments for value in values]


def dags_of(code: str, folder: Path) -> list[Any]:
    """Have Airflow read a file."""
    folder.mkdir()
    (folder / "shown.py").write_text(code)
    bag = BundleDagBag(dag_folder=str(folder), bundle_path=folder, bundle_name="shown")
    assert (bag.import_errors, bag.captured_warnings) == ({}, {}), code
    return list(bag.dags.values())


@pytest.mark.parametrize("page", [page for page in PAGES if shown(page)])
def test_every_file_of_dags_is_read(page: str, tmp_path: Path) -> None:
    for number, code in enumerate(shown(page)):
        found = dags_of(code, tmp_path / str(number))
        if "DAG(" in code:
            assert found, code
        else:  # what belongs into a DAG, or makes some: as long as it is a program
            exec(compile(code, page, "exec"), {})  # noqa: S102 - it is ours


@pytest.mark.parametrize("page", STREAMS)
def test_a_consumer_waits_for_its_stream_and_its_arguments_are_taken(
    page: str, tmp_path: Path
) -> None:
    for number, (stream, code) in enumerate(zip(STREAMS[page], shown(page), strict=True)):
        [dag] = dags_of(code, tmp_path / str(number))
        assert stream_asset(stream).uri in str(dag.timetable.asset_condition)
        [task] = dag.tasks
        assert (task.operator_class if task.is_mapped else type(task)) is ProcessOperator
        for arguments in arguments_of(task):
            parse(FORMS["process"], arguments)
        assert all(one["readers"] == len(arguments_of(task)) for one in arguments_of(task)
                   if "readers" in one)  # fmt: skip
