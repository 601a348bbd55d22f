"""### Append a folder each hour.

The files of a folder are one transaction, however often the task is retried or cleared. With it the
writer states up to when `example/orders` is complete, so that hours can be counted on.

A shop would leave a folder for each hour below Weir's input root. Here the first task does. One
order of each folder is of the hour before: it comes late.

`example_table_by_asset` and `example_hours_with_late_data` are started by what this DAG appends.
"""

from datetime import timedelta
from pathlib import Path

from airflow.sdk import DAG, CronDataIntervalTimetable, task

from weir.airflow import AppendOperator, ApplyOperator

with DAG(
    "example_folder_each_hour",
    schedule=CronDataIntervalTimetable("@hourly", timezone="UTC"),
    catchup=False,
    doc_md=__doc__,
    tags=["example"],
):
    declared = ApplyOperator(
        task_id="declare",
        text="""
            streams:
              example/orders:
                routing_key: order_id
                event_time: at
        """,
    )

    @task
    def deliver(data_interval_start):
        """Write the folder of the hour. The same hour has the same orders."""
        from weir.settings import load

        hour = data_interval_start.strftime("%Y-%m-%dT%H")
        file = Path(load().input_roots[0]) / "example_orders" / hour / "orders.csv"
        if file.exists():  # to Weir, a file that is written anew would be another one
            return
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = ["order_id,customer,amount,at"]
        for n in range(60):
            at = data_interval_start + timedelta(minutes=n if n else -10)
            lines.append(f"{hour}-{n},customer-{n % 7},{n * 1.5},{at:%Y-%m-%dT%H:%M:%SZ}")
        unfinished = file.with_name("orders.csv.part")
        unfinished.write_text("\n".join(lines))
        unfinished.rename(file)

    appended = AppendOperator(
        task_id="append",
        stream="example/orders",
        files=["example_orders/{{ data_interval_start.strftime('%Y-%m-%dT%H') }}"],
        complete_until="{{ data_interval_end }}",
    )
    declared >> deliver() >> appended
