"""Forms (a job's arguments as Airflow `Param`s) and the settings that all of Weir's DAGs share.

Every DAG has the tag `weir`, a tag for its subject (STREAMS, READER_GROUPS, DATA, UPKEEP), a tag
for who starts it (`manual` or `periodic`), and the tag `irreversible` if its effect cannot be
undone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import timedelta

from airflow.sdk import Asset, Param

from weir.airflow.tasks import RETRIES
from weir.operations.form import form_schema
from weir.operations.jobs import FORMS

POOL = "weir"
IRREVERSIBLE = "irreversible"
MOST_SAID = 12  # names in the help of a list, which Airflow's UI can't suggest beside other text


def manual(*tags: str) -> dict[str, object]:
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


def periodic(schedule: str | list[Asset], *tags: str) -> dict[str, object]:
    """Return the settings of a DAG that runs by itself: one run at a time, no catching up, with
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


def form(job: str, names: Mapping[str, Sequence[str]] | None = None) -> dict[str, Param]:
    """Return the form of a job: for each argument its type, pattern, choices, title, description,
    default and section. `names`: those that exist, by what they are names of, which fields suggest
    beside what a person types."""
    params = {}
    for one in fields(FORMS[job]):
        extra: dict[str, object] = {}
        if one.metadata["in_forms"] is not None:
            extra["default"] = one.metadata["in_forms"]
        elif one.default is not MISSING:
            extra["default"] = one.default
        elif one.default_factory is not MISSING:
            extra["default"] = one.default_factory()
        schema = form_schema(FORMS[job], one)
        there = (names or {}).get(one.metadata["names"], ())
        lines, shown = "", dict(one.metadata["shown"])
        if "items" in schema:  # with examples, its field would take nothing else
            lines = " One entry a line, without quotes." + _said(there)
        elif there:
            shown["examples"] = list(there)
        params[one.name] = Param(
            title=one.metadata["title"],
            description=one.metadata["description"] + lines,
            **schema,
            **shown,
            **extra,
        )
    return params


def _said(names: Sequence[str]) -> str:
    """Return a sentence with the names that there are."""
    if not names:
        return ""
    more = f" and {len(names) - MOST_SAID} more" if len(names) > MOST_SAID else ""
    return f" There are: {', '.join(names[:MOST_SAID])}{more}."
