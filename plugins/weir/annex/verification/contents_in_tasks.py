"""Verify the contents of files in Spark's tasks, each of which looks at files as a process of its
own does."""

import json
from collections.abc import Sequence
from dataclasses import asdict

from weir.annex.verification.files import Reader, Seen, look_at
from weir.annex.verification.recorded import Columns, Commit, File, Unit
from weir.annex.verification.verify import Contents
from weir.inputs.rows import grouped
from weir.installation.opened import Installation
from weir.warehouse.filesystem import filesystem, only_by_jvm

_AT_ONCE = 16 << 20  # bytes of files that one task reads, about


def contents_by_spark(app: Installation) -> Contents:
    """Return what reads the contents of files in Spark's tasks, each as `look_at` does."""

    def look(columns: Columns, units: Sequence[Unit]) -> list[list[Seen]]:
        of = [(file, unit.commits) for unit in units for file in unit.files]
        left = iter(_looked_at(app, columns, of))
        return [[next(left) for _ in unit.files] for unit in units]

    return look


def _looked_at(
    app: Installation, columns: Columns, files: Sequence[tuple[File, Sequence[Commit]]]
) -> list[Seen]:
    warehouse = app.settings.warehouse
    if only_by_jvm(warehouse):
        reader = Reader(*filesystem(warehouse), columns)
        return [look_at(reader, *one) for one in files]

    def look(one: tuple[File, Sequence[Commit]]) -> str:
        return json.dumps(asdict(look_at(Reader(*filesystem(warehouse), columns), *one)))

    from weir.spark.base.calls import called_in_tasks

    groups = grouped(files, [file.bytes for file, _ in files], _AT_ONCE)
    return [_seen(text) for text in called_in_tasks(app.spark, look, groups)]


def _seen(text: str) -> Seen:
    found = json.loads(text)
    sums = found["sums"]
    if sums is not None:
        sums = {int(clock): total for clock, total in sums.items()}
    wrong = [(kind, words) for kind, words in found["wrong"]]
    return Seen(wrong, sums, found["keys"], found["file_hash"])
