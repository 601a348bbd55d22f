"""What needs Spark, in one program: an expression as routing key, a DataFrame, a file, an adjunct
store, and a group that is read and enriched into a stream. Prints what came of it, as JSON."""

import json
import os
from pathlib import Path

import pyspark
from pyspark.sql import functions as F

import weir
import weir.spark

inputs = Path.cwd() / ".weir" / "input"
inputs.mkdir(parents=True)
(inputs / "orders.csv").write_text("customer,amount\nann,3\nbob,4\n")
with weir.open(os.environ["WEIR_DATABASE"], str(Path.cwd() / "warehouse")) as store:
    store.create_stream("shop/orders", "lower(customer)", segments=2)
    store.append(
        "shop/orders",
        store.spark.createDataFrame([("ann", 1), ("bob", 2)], "customer STRING, amount BIGINT"),
    )
    store.ingest("shop/orders", ["orders.csv"])
    store.create_stream("shop/regions", "customer")
    store.append("shop/regions", [{"customer": "ann", "region": "north"}])
    store.define_adjunct_store("shop/region", "shop/regions", key="customer", value="region")
    store.adjunct()
    store.create_stream("shop/kept", "customer")
    store.create_reader_group("totals", ["shop/orders"])
    stores = ["shop/region"]
    with weir.spark.Reader(store.spark, "totals", installation=store, adjuncts=stores) as reader:
        for batch in reader:
            found = batch.enrich(batch.events, "shop/region", on="customer")
            region = F.col("value").alias("region")
            batch.write("stream:shop/kept", found.select("customer", "amount", region))
            batch.commit()
    ordered = weir.spark.read(
        "shop/orders", order="stream", spark=store.spark, settings=store.settings
    ).collect()
    kept = store.read("shop/kept").to_pylist()
    print(
        json.dumps(
            {
                "version": pyspark.__version__,
                "read": sorted([row.customer, row.amount] for row in ordered),
                "kept": sorted(
                    [row["customer"], row["amount"], row["region"] or ""] for row in kept
                ),
            }
        )
    )
