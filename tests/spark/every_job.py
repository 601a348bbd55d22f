"""A program that runs every job of `spark_jobs` once, one after the other, in a process of its own,
and prints what became of each: with Spark wherever a job can use it."""

import json
import sys
from pathlib import Path
from typing import Any

import weir.annex.verification.kept as kept
import weir.spark.base.delete as delete
from weir.database.connection import Database
from weir.history.job_runs import RunId
from weir.operations.action import Job
from weir.operations.jobs import ACTIONS
from weir.operations.runner import failure_of, perform, record_failure
from weir.programs.opening import shared
from weir.settings import load

IN, OUT, NAMES, STORE, GROUP = "s/in", "s/out", "s/names", "s/newest", "g"
FUNCTION = "tests.spark.every_job"
LATE, MENDED, TOTALS = f"{FUNCTION}:late", f"{FUNCTION}:mended", f"{FUNCTION}:totals"
DEFINED = {"adjunct_store": STORE, "stream": NAMES, "key": "k", "history": "1 d"}
STORY: list[tuple[str, dict[str, Any]]] = [
    ("create_stream", {"stream": IN, "routing_key": "k", "segments": 2, "event_time": "at",
                       "schema": "k STRING, n BIGINT, at TIMESTAMP"}),
    ("create_stream", {"stream": OUT, "routing_key": "k"}),
    ("create_stream", {"stream": NAMES, "routing_key": "k"}),
    ("ingest", {"stream": NAMES, "files": ["a.csv"]}),
    ("create_stream", {"stream": "s/idle", "routing_key": "k"}),
    ("create_reader_group", {"reader_group": GROUP, "streams": [IN], "release": "manual"}),
    ("create_reader_group", {"reader_group": "never", "streams": [IN]}),
    ("ingest", {"stream": IN, "files": ["a.csv", "b.csv"], "engine": "spark"}),
    ("update_stream", {"stream": IN, "on_bad_rows": "quarantine", "scaling": "event_rate",
                       "target_rate": 1, "max_segments": "4", "scale_cooldown": "0 s"}),
    ("ingest", {"stream": IN, "files": ["c.json"], "engine": "spark"}),
    ("define_adjunct_store", DEFINED),
    ("adjunct", {"adjunct_stores": [STORE]}),
    ("ingest", {"stream": NAMES, "files": ["d.parquet"]}),
    ("adjunct", {"adjunct_stores": [STORE]}),
    ("update_adjunct_store", {"adjunct_store": STORE, "time_out": "3 d"}),
    ("process", {"reader_group": GROUP, "function": LATE, "on_error": "quarantine",
                 "outputs": [f"stream:{OUT}", "parquet:late partition_by=k", "table:public.late"],
                 "adjuncts": [STORE]}),
    ("put_back", {"reader_group": GROUP, "function": MENDED, "outputs": ["parquet:again"]}),
    ("checkpoint_reader_group", {"reader_group": GROUP, "name": "c"}),
    ("checkpoints", {}),
    ("stream_cuts", {}),
    ("release_reader_group", {"reader_group": GROUP, "at": "checkpoint c"}),
    ("fork_reader_group", {"reader_group": GROUP, "new_reader_group": "fork",
                           "at": "checkpoint c"}),
    ("update_reader_group", {"reader_group": "fork", "time_out": "30 d"}),
    ("reader_offline", {"reader_group": GROUP, "reader": "nobody"}),
    ("scale_stream", {"stream": IN, "segments": ["0.0"], "parts": 2}),
    ("scale", {"streams": [IN]}),
    ("back_test", {"stream": IN, "target_rate": 5}),
    ("apply", {"text": "streams: {s/idle: {routing_key: k, retention: age, retain_max_age: 1 h}}",
               "allow_loss": True}),
    ("reset_reader_group", {"reader_group": GROUP, "to": "head", "allow_repeat": True,
                            "dry_run": False}),
    ("process", {"reader_group": GROUP, "function": TOTALS, "outputs": ["parquet:totals"]}),
    ("erase", {"stream": IN, "reason": "asked", "keys": ["key 3"], "dry_run": False}),
    ("verify", {}),
    ("compact", {"streams": [IN, OUT]}),
    ("truncate_stream", {"stream": OUT, "cut": "tail", "dry_run": False}),
    ("retention", {}),
    ("audit", {"everything": True, "files": True}),
    ("recover", {}),
    ("upkeep", {}),
    ("delete_adjunct_store", {"adjunct_store": STORE, "dry_run": False}),
    ("delete_reader_group", {"reader_group": "never", "dry_run": False}),
    ("seal_stream", {"stream": "s/idle"}),
    ("seal_stream", {"stream": OUT}),
    ("delete_stream", {"stream": OUT, "unread_too": True, "dry_run": False}),
]  # fmt: skip


def late(events: Any, adjuncts: Any) -> dict[str, Any]:
    """Fail for one event; return the others with what the store knows of their keys."""
    from pyspark.sql import functions as F

    n = F.when(F.col("n") == 7, F.raise_error(F.lit("seven"))).otherwise(F.col("n"))
    known = adjuncts.enrich(events, STORE, "k", prefix="now_").withColumn("n", n)
    rows = known.select("k", "n", "now_n")
    return {OUT: rows, "late": rows, "public.late": rows}


def mended(events: Any) -> Any:
    """Return what was read."""
    return events.select("k", "n")


def totals(events: Any) -> Any:
    """Return a row for each key, by a function in Spark's workers."""
    from pyspark.sql import functions as F

    return events.groupBy("k").agg(F.sum("n").alias("n"))


def main() -> None:
    """Run the story, and print each report, then what there is."""
    delete.FEW = kept.FEW = 1
    ACTIONS["erase"].run.__globals__["MUCH"] = 0
    settings, told = load(), list[dict[str, Any]]()
    with Database.of(settings) as database:
        for number, (name, arguments) in enumerate(STORY):
            job = Job(name, RunId("story", f"run {number}", name), settings, database)
            try:
                report = perform(job, ACTIONS[name], arguments)
                told.append({"job": name, "report": report, "sentence": job.sentence})
            except Exception as error:
                record_failure(job, error)
                told.append({"job": name, "failed": list(failure_of(error))})
            print(json.dumps(told[-1], default=str), flush=True)
    store = shared(settings)
    there = {
        name: list(map(str, store.read(name, order="stream").drop_columns("_clock").to_pylist()))
        for name in (IN, f"{IN}.rejected")
    }
    print(json.dumps({"there": there}), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
