"""Read an Iceberg table with Spark and Iceberg's runtime, in an environment of its own.

Arguments, as JSON: `jars`, `jdbc` (the database), `user`, `table`, `metadata`. Prints the rows as
JSON: by the catalogue, and by the address of the metadata.
"""

import json
import sys
from typing import Any

from pyspark.sql import SparkSession


def main(given: dict[str, Any]) -> None:
    """Print what Spark reads."""
    named = "spark.sql.catalog.weir"
    spark = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(given["jars"]))
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config(
            "spark.sql.extensions",
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        )
        .config(named, "org.apache.iceberg.spark.SparkCatalog")
        .config(f"{named}.type", "jdbc")
        .config(f"{named}.uri", given["jdbc"])
        .config(f"{named}.jdbc.user", given["user"])
        .config(f"{named}.jdbc.schema-version", "V1")
        .config(f"{named}.init-catalog-tables", "false")
        .config(f"{named}.warehouse", "/nowhere")
        .getOrCreate()
    )
    found = {
        "catalog": spark.table(f"weir.{given['table']}"),
        "metadata": spark.read.format("iceberg").load(given["metadata"]),
    }
    said: dict[str, Any] = {
        name: [row.asDict(True) for row in frame.collect()] for name, frame in found.items()
    }
    said["refused"] = [refused(spark, one) for one in given.get("refused", [])]
    print(json.dumps(said, default=str))


def refused(spark: SparkSession, statement: str) -> str:
    """Return the first line of the error of a statement; empty if it is not refused."""
    try:
        spark.sql(statement).collect()
    except Exception as error:
        return str(error).strip().partition("\n")[0]
    return ""


main(json.loads(sys.argv[1]))
