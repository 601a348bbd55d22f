"""Forms (a job's arguments as Airflow `Param`s) and the settings that all of Weir's DAGs share.

Every DAG has the tag `weir`, a tag for its subject (STREAMS, READER_GROUPS, DATA, UPKEEP), a tag
for who starts it (`manual` or `periodic`), and the tag `irreversible` if its effect cannot be
undone.
"""

from dataclasses import MISSING, fields
from datetime import timedelta
from typing import Any

from airflow.sdk import Param

from weir.actions import FORMS
from weir.airflow.tasks import RETRIES
from weir.operations.form import form_schema

POOL = "weir"
IRREVERSIBLE = "irreversible"


def manual(*tags: str) -> dict[str, Any]:
    """Return the settings of a DAG that people trigger.

    Several runs may be active at once, because Postgres keeps them apart. The DAG is unpaused when
    it is new, because a run of a paused DAG that is triggered through the API waits forever without
    a message.
    """
    return {
        "schedule": None,
        "catchup": False,
        "is_paused_upon_creation": False,
        "tags": ["weir", "manual", *tags],
        "default_args": {**RETRIES, "owner": "weir"},
    }


def periodic(schedule: str, *tags: str) -> dict[str, Any]:
    """Return the settings of a DAG that runs on a schedule: one run at a time, no catching up, with
    time-outs, unpaused when it is new."""
    return {
        "schedule": schedule,
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
    """Return the form of a job: for each argument its type, pattern, choices, title, description,
    default and section."""
    params = {}
    for one in fields(FORMS[job]):
        extra: dict[str, Any] = {}
        if one.default is not MISSING:
            extra["default"] = one.default
        elif one.default_factory is not MISSING:
            extra["default"] = one.default_factory()
        schema = form_schema(FORMS[job], one)
        lines = " One entry a line, without quotes." if "items" in schema else ""
        params[one.name] = Param(
            title=one.metadata["title"],
            description=one.metadata["description"] + lines,
            **schema,
            **one.metadata["shown"],
            **extra,
        )
    return params
