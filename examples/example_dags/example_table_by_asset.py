"""### Put what is appended to a stream into a table.

The DAG runs whenever something is committed to `example/orders`, whoever appended it. The rows and
the position of the reader group are written to Postgres in one transaction, so each order is in the
table `example.orders` exactly once (`tables.sql` makes it).

`example_folder_each_hour` appends orders.
"""

from airflow.sdk import DAG, task

from weir.airflow import ApplyOperator, stream_asset

with DAG(
    "example_table_by_asset",
    schedule=[stream_asset("example/orders")],
    catchup=False,
    doc_md=__doc__,
    tags=["example"],
):
    declared = ApplyOperator(
        task_id="declare",
        text="""
            reader_groups:
              example_table:
                streams: [example/orders]
        """,
    )

    @task.weir_process(reader_group="example_table", outputs=["table:example.orders"])
    def orders(events):
        return events.select(["order_id", "customer", "amount", "at"])

    declared >> orders()
