"""`batch_id` of an ingest: an id in place of the files."""

from typing import Any

from tests.inputs.conftest import Files
from tests.raises import raises
from weir.history.job_runs import RunId
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import perform


def test_a_task_appends_its_files_once_under_a_batch_id(files: Files) -> None:
    stream = files.create()

    def ingest(run: str, task: str, batch: str, *paths: str, **more: Any) -> bool:
        run_id = RunId("mine", run, task)
        job = Job("ingest", run_id, files.settings, files.database)
        given = {"stream": str(stream), "files": list(paths), "batch_id": batch, **more}
        return bool(perform(job, ACTIONS["ingest"], given)["repeated"])

    files.put("day/a.csv", "k\na\n")
    assert not ingest("1", "load", "day", "day")
    files.put("day/b.csv", "k\nb\n")
    assert ingest("2", "load", "day", "day"), "whatever the folder has"
    with raises("request_reused appended"):
        ingest("2", "load", "day", "day/b.csv")
    with raises("file_already_appended"):
        ingest("2", "other", "day", "day")
    assert not ingest("2", "other", "day", "day", allow_repeated_files=True)
    assert ingest("3", "other", "day", "day", allow_repeated_files=True)
    assert not ingest("3", "load", "second", "day/b.csv", allow_repeated_files=True)
    assert len(files.events(stream)) == 4
