"""### Compute each hour when it is complete, and again when late events come.

A run has an hour as its partition key. It begins when the writers of `example/orders` have stated
that this hour is complete, and never because events have arrived. If orders of that hour come
later, there is another run with the same key: it computes the hour anew, and replaces its file.

The files are in the folder `example_hours` below Weir's output root. `example_folder_each_hour`
appends orders. To compute an hour again, trigger this DAG with its key, such as
`2026-06-01T10:00:00`.
"""

import csv
from pathlib import Path

from airflow.sdk import DAG, PartitionedAssetTimetable, task

from weir.airflow import partition, stream_hours

with DAG(
    "example_hours_with_late_data",
    schedule=PartitionedAssetTimetable(assets=stream_hours("example/orders")),
    catchup=False,
    max_active_runs=1,  # two runs of one hour would write one file
    doc_md=__doc__,
    tags=["example"],
):

    @task
    def total(**context):
        """Write the file of the hour, and return what is in it."""
        from weir.settings import load

        hour = partition(context)
        amounts = hour.read("example/orders", columns=["amount"])["amount"].to_pylist()
        found = {
            "hour": hour.key,
            "orders": len(amounts),
            "amount": sum(amounts),
            "late": hour.late,
        }
        folder = Path(load().output_roots[0]) / "example_hours"
        folder.mkdir(parents=True, exist_ok=True)
        with open(folder / f"{hour.since:%Y-%m-%dT%H}.csv", "w", newline="") as file:
            csv.writer(file).writerows([found.keys(), found.values()])
        return found

    total()
