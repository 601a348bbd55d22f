"""Where partitions hang on Airflow. Their DAG is a file of `dags`."""

from weir.airflow.offered import Offered
from weir.annex.partitions.deadlines import GroupReadDeadline, StreamCompleteDeadline
from weir.annex.partitions.partitions import partition, since, stream_days, stream_hours, until

OFFERED = Offered(
    names={
        "partition": partition, "stream_days": stream_days, "stream_hours": stream_hours,
        "GroupReadDeadline": GroupReadDeadline, "StreamCompleteDeadline": StreamCompleteDeadline,
    },
    macros=(since, until),
    deadlines=(GroupReadDeadline, StreamCompleteDeadline),
)  # fmt: skip
