"""Rows that a query of Spark gives."""

from collections.abc import Mapping

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from weir.errors import InvalidInput
from weir.spark.failures.unreadable import first_cause


def queried(spark: SparkSession, query: str, parameters: Mapping[str, object]) -> DataFrame:
    """Return the rows of a query in a session, with values for its `:name`, which Spark binds: they
    are never part of the text. Raises InvalidInput if Spark can't resolve it."""
    try:
        frame = spark.sql(query, args=dict(parameters))
    except (AnalysisException, ParseException) as error:
        raise InvalidInput(
            "expression_invalid",
            f"Spark refuses the query ({first_cause(error).rstrip('.')}); correct it in the DAG "
            "file.",
        ) from None
    if not frame.columns:
        raise InvalidInput(
            "expression_invalid",
            "the query gives no columns, so there is nothing to append; SELECT.",
        )
    return frame
