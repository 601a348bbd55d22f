"""Forms: the arguments of a job as Airflow `Param`s, and what all of Weir's DAGs have in common.

Every DAG has the tag `weir`, one for what it is about (STREAMS, READER_GROUPS, DATA, UPKEEP), one
for who starts it (`manual`, `periodic`), and `irreversible` if what it does can't be taken back.
"""

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any

from airflow.sdk import Param

from weir.airflow.layout import layout
from weir.operations import JOBS, form_schema

POOL = "weir"
RETRIES: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=5),
}
STREAMS, READER_GROUPS, DATA, UPKEEP = "streams", "reader groups", "data", "upkeep"
IRREVERSIBLE = "irreversible"


def manual(*tags: str) -> dict[str, Any]:
    """Settings of a DAG that people trigger. Several runs may go on at once; Postgres keeps them
    apart. Unpaused, because a run of a paused one that is triggered over the API waits for ever,
    and says nothing."""
    return {
        "schedule": None,
        "catchup": False,
        "is_paused_upon_creation": False,
        "tags": ["weir", "manual", *tags],
        "default_args": {**RETRIES, "owner": "weir"},
    }


def periodic(*tags: str) -> dict[str, Any]:
    """Settings of a DAG that must always run: one run at a time, no backlog, never stuck, unpaused
    when it is new."""
    return {
        "catchup": False,
        "max_active_runs": 1,
        "is_paused_upon_creation": False,
        "dagrun_timeout": timedelta(hours=2),
        "tags": ["weir", "periodic", *tags],
        "default_args": {
            **RETRIES,
            "owner": "weir",
            "pool": POOL,
            "execution_timeout": timedelta(hours=1),
        },
    }


def form(job: str) -> dict[str, Param]:
    """The form of a job: types, patterns, choices, descriptions, defaults, sections."""
    params = {}
    for one in fields(JOBS[job]):
        extra: dict[str, Any] = {}
        if one.default is not MISSING:
            extra["default"] = one.default
        elif one.default_factory is not MISSING:
            extra["default"] = one.default_factory()
        schema = form_schema(JOBS[job], one)
        lines = " One entry a line, without quotes." if "items" in schema else ""
        params[one.name] = Param(
            title=one.metadata["title"],
            description=one.metadata["description"] + lines,
            **schema,
            **layout(job, one.name),
            **extra,
        )
    return params
