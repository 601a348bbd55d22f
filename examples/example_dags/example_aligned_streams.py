"""### Join two streams in batches that hold both up to one moment.

A batch of an aligned reader group has everything of both streams up to one moment, and nothing
after it. So a sale is found with its payment if both were there by then, and a batch that is read
again, after a failure, finds the same pairs.

The pairs are in the Parquet output `example_paid`; `weir.parquet_outputs` has its folders.
"""

from airflow.sdk import DAG, task

from weir.airflow import ApplyOperator

with DAG(
    "example_aligned_streams",
    schedule=None,
    catchup=False,
    doc_md=__doc__,
    tags=["example"],
):
    declared = ApplyOperator(
        task_id="declare",
        text="""
            streams:
              example/sales:
                routing_key: sale
              example/payments:
                routing_key: sale
            reader_groups:
              example_paid:
                streams: [example/sales, example/payments]
                aligned: true
        """,
    )

    @task.weir_append(stream="example/sales")
    def sales(run_id):
        return [{"sale": f"{run_id} {n}", "amount": n * 2.5} for n in range(20)]

    @task.weir_append(stream="example/payments")
    def payments(run_id):
        return [{"sale": f"{run_id} {n}", "paid_by": "card"} for n in range(0, 20, 2)]

    @task.weir_process(reader_group="example_paid", outputs=["parquet:example_paid"])
    def paid(events):
        sold = events["example/sales"].select(["sale", "amount"])
        return sold.join(
            events["example/payments"].select(["sale", "paid_by"]), "sale", join_type="inner"
        )

    declared >> [sales(), payments()] >> paid()
