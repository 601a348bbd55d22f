"""`batch_id` of an ingest: an id in place of the files."""

from pathlib import Path
from typing import Any

from tests.raises import raises
from tests.spark.installation import Installation
from weir.history.job_runs import RunId
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import perform


def test_a_task_appends_its_files_once_under_a_batch_id(weir: Installation) -> None:
    stream = weir.create(key="k")

    def ingest(run: str, task: str, batch: str, *files: str, **more: Any) -> bool:
        run_id = RunId("mine", run, task)
        job = Job("ingest", run_id, weir.settings, weir.database, start_spark=lambda: weir.spark)
        given = {"stream": str(stream), "files": list(files), "batch_id": batch, **more}
        return bool(perform(job, ACTIONS["ingest"], given)["repeated"])

    folder = Path(weir.input) / "day"
    folder.mkdir()
    (folder / "a.csv").write_text("k\na\n")
    assert not ingest("1", "load", "day", "day")
    (folder / "b.csv").write_text("k\nb\n")
    assert ingest("2", "load", "day", "day"), "whatever the folder has"
    with raises("batch_shared"):
        ingest("2", "load", "day", "day/b.csv")
    with raises("file_already_appended"):
        ingest("2", "other", "day", "day")
    assert not ingest("2", "other", "day", "day", allow_repeated_files=True)
    assert ingest("3", "other", "day", "day", allow_repeated_files=True)
    assert not ingest("3", "load", "second", "day/b.csv", allow_repeated_files=True)
    keys = weir.value("SELECT sum(events) FROM transactions WHERE stream = :s", s=str(stream))
    assert keys == 4
