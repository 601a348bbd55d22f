"""Airflow's LocalExecutor, whose tasks need not load what an append in the worker needs, and may be
answered as soon as they ask.

The scheduler loads pyarrow, pandas and Weir once, before it forks its workers: in a process of its
own that takes longer than an append. No thread is started by it that a fork would lose."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow.executors import local_executor

if TYPE_CHECKING:
    from airflow.executors.workloads import ExecuteTask


class LocalExecutor(local_executor.LocalExecutor):
    """Loads it once, in the scheduler, before the processes of tasks are forked, and keeps the ends
    of processes apart."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)
        self._processes: Counter[object] = Counter()  # of each try, that have not ended

    def start(self) -> None:
        """Load it, and fork the workers."""
        if self.is_mp_using_fork:
            import pyarrow as pa

            import weir.airflow.dags
            import weir.airflow.decorators
            import weir.airflow.periodic
            import weir.programs.appending  # noqa: F401

            pa.array([])  # loads pandas, if it is installed
        super().start()

    def _process_workloads(self, workload_list: Sequence["ExecuteTask"]) -> None:
        self._processes.update(one.key for one in workload_list)
        super()._process_workloads(workload_list)

    def change_state(
        self, key: object, state: object, info: object = None, remove_running: bool = True
    ) -> None:
        """Report what became of a process, unless its try has another.

        A try that has waited for a person or a trigger goes on in a new process. The one that asked
        may end later than that, on a busy machine. The scheduler would take that end for the new
        one's, and fail the try: the next would ask again, although the first was approved.
        """
        self._processes[key] -= 1
        if self._processes[key] > 0:
            return
        del self._processes[key]
        super().change_state(key, state, info, remove_running)
