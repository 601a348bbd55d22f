"""Quarantine the events for which a transform or a function of an adjunct store fails."""

from pyspark.sql import functions as F

from weir.adjunct.builds import Build
from weir.controller.rejected import make_rejected_stream
from weir.installation.opened import Installation
from weir.spark.adjuncts.changes import FAILED, PLACE, REASON, Changes
from weir.spark.appends.appender import Appender
from weir.spark.appends.rejected import segment_text
from weir.spark.base.exact import as_json


def quarantine(app: Installation, build: Build, changes: Changes) -> None:
    """Append the events that fail to `<stream>.rejected`, as JSON with their segment, their offset
    and what fails.

    Each attempt at a version appends them under the same identity, so they are there once.
    `changes` without places are rows of the version's base, of which nobody knows the segment and
    the offset any more.
    """
    store = build.store
    source, place, part = F.lit(f"adjunct store {store.name}"), F.lit(None), "base"
    if PLACE in changes.frame.columns:
        segment = segment_text(F.col(f"{PLACE}._segment"))
        source, place = F.concat(source, F.lit(", segment "), segment), F.col(f"{PLACE}._offset")
        part = "events"
    rows = changes.frame.where(F.col(FAILED)).select(
        as_json(changes.event).alias("row"),
        source.alias("source"),
        place.cast("long").alias("place"),
        F.col(REASON).alias("reason"),
    )
    Appender(app).append_frame(
        make_rejected_stream(app.database, store.stream), rows,
        writer_id=f"adjunct store {store.store_id}", batch_id=f"version {build.version} {part}",
    )  # fmt: skip
