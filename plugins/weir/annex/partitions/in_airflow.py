"""Where partitions hang on Airflow. Their DAG is a file of `dags`."""

from weir.airflow.offered import Offered
from weir.annex.partitions.deadlines import GroupReadDeadline, StreamCompleteDeadline
from weir.annex.partitions.partitions import since, until

_DEADLINES = ("GroupReadDeadline", "StreamCompleteDeadline")
_PARTITIONS = ("partition", "stream_days", "stream_hours")

OFFERED = Offered(
    names={
        **dict.fromkeys(_DEADLINES, "weir.annex.partitions.deadlines"),
        **dict.fromkeys(_PARTITIONS, "weir.annex.partitions.partitions"),
    },
    macros=(since, until),
    deadlines=(GroupReadDeadline, StreamCompleteDeadline),
)
