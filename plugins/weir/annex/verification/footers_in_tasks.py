"""Compare the footers of files with what was recorded, in tasks of Spark."""

import json
from collections.abc import Sequence
from functools import partial

from weir.annex.verification.footers import Look, Wrong, look_here
from weir.annex.verification.recorded import Recorded
from weir.installation.opened import StartSpark
from weir.warehouse.filesystem import only_by_jvm

_SHARE = 500  # files of a task, at least: it costs as much as to read the ends of some


def looker(start_spark: StartSpark, *, few: int = 1) -> Look:
    """Return what looks at footers in one Spark job, or in this process if there are fewer files
    than `few`. The Spark session is created when it is first needed.

    Files that only Hadoop can read are looked at in this process, because the executors' Python
    workers cannot reach their JVMs.
    """

    def look(warehouse: str, files: Sequence[Recorded]) -> list[Wrong]:
        if len(files) < few or only_by_jvm(warehouse):
            return look_here(warehouse, files)
        from weir.spark.base.calls import called_in_tasks, divided

        spark = start_spark()
        parts = [[part] for part in divided(spark, files, _SHARE)]
        answers = called_in_tasks(spark, partial(_look_at_part, warehouse), parts)
        return [[(kind, words) for kind, words in wrong]
                for answer in answers for wrong in json.loads(answer)]  # fmt: skip

    return look


def _look_at_part(warehouse: str, files: Sequence[Recorded]) -> str:
    return json.dumps(look_here(warehouse, files))
