"""What Airflow runs by itself, if there is something to do: its triggerer asks Weir's database when
the schedule comes round, and nothing is started otherwise. Each task submits one PySpark job: the
file of its name in `spark_jobs`, whose page is the DAG's ("Dag Docs"). A DAG has one run at a time,
and catches up on none."""

from weir.airflow.dags import scheduled
from weir.airflow.operators import WeirJobOperator
from weir.airflow.periodic import PeriodicJobOperator

# Every five minutes, a minute after each other.


@scheduled("*/5 * * * *")
def weir_stream_cuts() -> None:
    """Record the tail of each stream that has moved, and prove the files that came since."""
    PeriodicJobOperator(task_id="stream_cuts", job="stream_cuts")


@scheduled("1-59/5 * * * *")
def weir_adjunct() -> None:
    """Build the adjunct stores whose streams have new events."""
    PeriodicJobOperator(task_id="adjunct", job="adjunct")


@scheduled("2-59/5 * * * *")
def weir_checkpoints() -> None:
    """Record the positions of each reader group that has moved, and release what it has read."""
    PeriodicJobOperator(task_id="checkpoints", job="checkpoints")


@scheduled("4-59/5 * * * *")
def weir_scale() -> None:
    """Split segments that are hot, and merge those that are cold."""
    PeriodicJobOperator(task_id="scale", job="scale")


# Twice an hour: what every subscriber has released is truncated, and its files are deleted.


@scheduled("*/30 * * * *")
def weir_retention() -> None:
    """Truncate what the policies of streams allow, and delete files that nobody can read."""
    PeriodicJobOperator(task_id="retention", job="retention")


# Every hour: what is left over is tidied up.


@scheduled("17 * * * *")
def weir_upkeep() -> None:
    """Abort appends that were given up, put small files together, prune old metadata."""
    PeriodicJobOperator(task_id="upkeep", job="upkeep")


# Every Sunday night: the proof that nothing was lost, doubled or out of order.


@scheduled("23 3 * * 0", always=True)
def weir_audit() -> None:
    """Prove that every event was delivered once, is kept, or is lost for a reason."""
    WeirJobOperator(task_id="audit", job="audit")
