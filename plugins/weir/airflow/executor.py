"""Airflow's LocalExecutor, whose tasks need not load what an append in the worker needs."""

from airflow.executors import local_executor


class LocalExecutor(local_executor.LocalExecutor):
    """Loads it once, in the scheduler, before the processes of tasks are forked."""

    def start(self) -> None:
        """Load it, and fork the workers."""
        if self.is_mp_using_fork:
            import pyarrow as pa

            import weir.airflow.decorators
            import weir.programs.appending  # noqa: F401

            pa.array([])  # loads pandas, if it is installed
        super().start()
