"""### Share a stream among three readers, wait for all, and export what they made.

Three mapped tasks are three readers of one group: they share its segments, and take over from each
other. Each visit is cleaned by one of them, exactly once, also if a task is killed. The sensor
waits in Airflow's triggerer until the group has read everything. Then one task exports the result.

The export is in the folder `example_visits` below Weir's output root.
"""

from pathlib import Path

from airflow.sdk import DAG, task

from weir.airflow import ApplyOperator, GroupSensor

with DAG(
    "example_fan_out",
    schedule=None,
    catchup=False,
    doc_md=__doc__,
    tags=["example"],
):
    declared = ApplyOperator(
        task_id="declare",
        text="""
            streams:
              example/clicks:
                routing_key: visitor
                segments: 6
              example/visits:
                routing_key: visitor
            reader_groups:
              example_visits:
                streams: [example/clicks]
        """,
    )

    @task.weir_append(stream="example/clicks")
    def clicks(run_id):
        return [{"visitor": f"v{n % 50}", "page": f" /P{n} ", "run": run_id} for n in range(1000)]

    @task.weir_process(reader_group="example_visits", outputs=["stream:example/visits"], readers=3)
    def clean(events, reader):
        import pyarrow as pa
        import pyarrow.compute as pc

        pages = pc.utf8_lower(pc.utf8_trim_whitespace(events["page"]))
        columns = {"visitor": events["visitor"], "page": pages, "run": events["run"]}
        return pa.table(columns | {"reader": pa.repeat(reader, len(events))})

    read = GroupSensor(task_id="wait", reader_group="example_visits", unread_at_most=0)

    @task
    def export():
        """Write all visits into one file, and return how many they are."""
        import pyarrow.csv

        import weir
        from weir.settings import load

        with weir.open() as store:
            visits = store.read("example/visits", columns=["visitor", "page", "run", "reader"])
        folder = Path(load().output_roots[0]) / "example_visits"
        folder.mkdir(parents=True, exist_ok=True)
        pyarrow.csv.write_csv(visits, folder / "visits.csv")
        return visits.num_rows

    declared >> clicks() >> clean.expand(reader=["a", "b", "c"]) >> read >> export()
