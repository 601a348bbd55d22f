"""Look for places in Spark's tasks, each of which reads files as a process of its own does."""

from collections.abc import Sequence

from weir.annex.erasure.find import Each, Look, here
from weir.controller.read_plan import FileSlice
from weir.inputs.rows import grouped
from weir.installation.opened import StartSpark
from weir.settings import Settings
from weir.warehouse.filesystem import only_by_jvm

_AT_ONCE = 1_000_000  # rows that one task reads, about


def in_tasks(start_spark: StartSpark) -> Each:
    """Return what looks at files in tasks of a session. Files that only Hadoop can read are looked
    at in this process, because the executors' Python workers can't reach their JVMs."""

    def each(settings: Settings, look: Look, slices: Sequence[FileSlice]) -> list[str]:
        if only_by_jvm(settings.warehouse):
            return here(settings, look, slices)
        from weir.spark.base.calls import called_in_tasks, for_workers

        asked = for_workers(settings)
        groups = grouped(slices, [part.rows for part in slices], _AT_ONCE)
        return called_in_tasks(start_spark(), lambda part: look(asked, part), groups)

    return each
