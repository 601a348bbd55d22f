"""Numbers for monitoring, of the view weir.metrics, as text for Prometheus."""

from collections.abc import Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from weir.database.connection import Database
from weir.operations.steps import Metric
from weir.queries.operations import metrics as sql
from weir.seams import hung

if TYPE_CHECKING:
    from prometheus_client import Metric as Family

# Each metric of the core that the view has, with what it is.
_METRICS = {
    "weir_alerts": "What is wrong and somebody should look at (weir.troubles), by kind",
    "weir_failed_jobs": "Jobs that failed or were killed in the last 24 hours",
    "weir_garbage_bytes": "Bytes of files that nothing refers to and that a sweep will delete",
    "weir_group_lost_events_total": "Events that were truncated before the group read them",
    "weir_group_open_batches": "Batches that are being read",
    "weir_group_opened_batches_total": "Batches that were opened since the group was created",
    "weir_group_readers": "Readers that have joined",
    "weir_group_unread_bytes": "Bytes that the group has not read of the stream",
    "weir_group_unread_events": "Events that the group has not read of the stream",
    "weir_group_waiting_seconds": "How long ago the oldest unread event was committed",
    "weir_open_appends": "Appends that are being written",
    "weir_stream_appended_events_total": "Events that were appended since the stream was created",
    "weir_stream_bytes": "Bytes of the events between head and tail",
    "weir_stream_events": "Events between head and tail",
    "weir_stream_segments": "Active segments",
    "weir_versions_waiting_seconds": "How long commits have waited to be versions "
    "(weir.waiting_versions names the transaction that they wait for)",
}


def metrics() -> dict[str, str]:
    """Return what each metric of the view is."""
    return _METRICS | {one.name: one.about for one in hung(Metric)}


Rows = list[sql.Measured]


def rows_of(database: Database) -> Rows:
    """Return each metric now, by their names. One statement."""
    return database.snapshot(sql.measured)


def as_text(rows: Rows) -> str:
    """Return metrics in the format that Prometheus reads, version 0.0.4."""
    from prometheus_client import generate_latest
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    class Now:
        """What Prometheus calls a registry."""

        def collect(self) -> "Iterator[Family]":
            about = metrics()
            for name, some in _by_name(rows):
                family = CounterMetricFamily if name.endswith("_total") else GaugeMetricFamily
                names = sorted(some[0].labels)
                one = family(name, about[name], labels=names)
                for row in some:
                    one.add_metric([row.labels[label] for label in names], row.value)
                yield one

    # It asks for a registry, of which it calls one method.
    return generate_latest(Now()).decode()


def _by_name(rows: Rows) -> Iterator[tuple[str, Rows]]:
    for name, some in groupby(rows, lambda row: row.metric):
        yield name, list(some)
