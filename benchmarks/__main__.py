"""`python -m benchmarks [--figure NAME] [--size small|full]`: every figure, a JSON line each.

A small run takes twelve minutes on two cores: two pairs of most figures in place of five, a
hundredth of the metadata's history, a tenth of the streams, and fewer events, files and commits
where the ratio is the same with fewer. A figure without a limit is measured in a full run only, or
if it is asked for. The exit status is not 0 if a figure is beyond its limit. Notes go to standard
error.
"""

import argparse
import signal
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from benchmarks import (
    adjunct_joins,
    adjunct_stores,
    airflow_runs,
    airflow_tasks,
    appends,
    audits,
    batches,
    commits,
    control,
    data_path,
    engines,
    erasures,
    event_time,
    files,
    first_picture,
    format_writes,
    group_reader,
    metadata,
    object_stores,
    one_segment,
    order,
    ordered_reads,
    overhead,
    pages,
    people,
    publications,
    scaling,
    small_batches,
    small_jobs,
    spark_defaults,
    split_points,
    streaming_queries,
    takeover,
    terminal,
    text_files,
    verification,
    watching,
)
from benchmarks.setting import bench_setting


def main() -> int:
    """Measure the figures whose name begins as asked. Return the exit status: 0 if all are within
    their limits, 1 if one is not, 2 if there is no figure of this name."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("--figure", default="", help="only figures whose name begins so")
    parser.add_argument("--size", default="small", choices=["", "small", "full"])
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, _stop)
    ok = True
    found = False
    with (
        tempfile.TemporaryDirectory(prefix="weir-bench-") as folder,
        bench_setting(Path(folder), full=given.size == "full") as setting,
    ):
        for area in (
            data_path,
            spark_defaults,  # of the same rows
            text_files,
            event_time,
            ordered_reads,
            one_segment,
            verification,  # before its files are put together
            files,
            erasures,
            audits,
            split_points,
            overhead,
            metadata,
            commits,
            control,
            watching,  # in the databases of control
            pages,  # in them, too
            first_picture,  # in theirs
            scaling,
            batches,
            takeover,
            order,
            terminal,
            people,
            appends,
            group_reader,
            engines,
            publications,
            format_writes,
            streaming_queries,
            small_batches,
            small_jobs,
            object_stores,
            adjunct_joins,
            adjunct_stores,
            airflow_tasks,
            airflow_runs,
        ):
            for name, make in area.FIGURES.items():
                if name.startswith(given.figure):
                    found = True
                    begun = time.monotonic()
                    setting.said.clear()
                    figure = make(setting)
                    if figure.limit is None and not (setting.full or given.figure):
                        continue
                    runs = figure.runs if setting.full else min(figure.runs, figure.small_runs)
                    size = "full" if setting.full else "small"
                    ok &= replace(figure, runs=runs, size=size).measure(begun, setting.said)
    if not found:
        print(f"there is no figure {given.figure!r}", file=sys.stderr)
        return 2
    return 0 if ok else 1


def _stop(*_: object) -> None:
    """Stop the run once, as Ctrl-C does, so that its servers are stopped."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
