"""A consumer that joins each flight with adjunct stores, besides adding up delays."""

from typing import Any

from pyspark.sql import DataFrame

from flights.delays import partial_statistics


def statistics_and_details(events: DataFrame, adjuncts: Any) -> dict[str, DataFrame]:
    """Return the statistics of `flights.delays`, and each flight with its aircraft, airline and
    weather. A weather report holds from its hour on, so the join asks what held then."""
    joined = adjuncts.enrich(events, "nyc/planes", "tailnum", prefix="plane_")
    joined = adjuncts.enrich(joined, "nyc/airlines", "carrier", prefix="airline_")
    joined = adjuncts.enrich(
        joined,
        "nyc/weather",
        "origin",
        as_of="time_hour",
        valid_from="time_hour",
        prefix="weather_",
    )
    details = joined.selectExpr(
        "source_row", "plane_seats AS seats", "airline_name AS airline", "weather_temp AS temp"
    )
    return {**partial_statistics(events), "details": details}
