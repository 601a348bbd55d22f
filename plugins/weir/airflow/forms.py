"""Forms: the arguments of a job as Airflow `Param`s, and what all of Weir's DAGs have in common."""

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any

from airflow.sdk import Param

from weir.arguments import JOBS, form_schema

POOL = "weir"
RETRIES: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(seconds=10),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=5),
}
# A DAG that people trigger: several runs may go on at once; Postgres keeps them apart. Unpaused,
# because a run of a paused one that is triggered over the API waits for ever, and says nothing.
MANUAL: dict[str, Any] = {
    "schedule": None,
    "catchup": False,
    "is_paused_upon_creation": False,
    "tags": ["weir", "manual"],
    "default_args": {**RETRIES, "owner": "weir"},
}
# A DAG that must always run: one run at a time, no backlog, never stuck, unpaused when it is new.
PERIODIC: dict[str, Any] = {
    "catchup": False,
    "max_active_runs": 1,
    "is_paused_upon_creation": False,
    "dagrun_timeout": timedelta(hours=2),
    "tags": ["weir", "periodic"],
    "default_args": {
        **RETRIES,
        "owner": "weir",
        "pool": POOL,
        "execution_timeout": timedelta(hours=1),
    },
}


def form(job: str) -> dict[str, Param]:
    """The form of a job: types, patterns, choices, descriptions and defaults."""
    params = {}
    for one in fields(JOBS[job]):
        extra: dict[str, Any] = {}
        if one.default is not MISSING:
            extra["default"] = one.default
        elif one.default_factory is not MISSING:
            extra["default"] = one.default_factory()
        params[one.name] = Param(
            title=one.metadata["title"],
            description=one.metadata["description"],
            **form_schema(JOBS[job], one),
            **extra,
        )
    return params
