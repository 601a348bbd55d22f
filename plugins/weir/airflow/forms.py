"""Forms (a job's arguments as Airflow `Param`s) and the settings that all of Weir's DAGs share.

Every DAG has the tag `weir`, a tag for its subject (STREAMS, READER_GROUPS, DATA, UPKEEP), a tag
for who starts it (`manual` or `periodic`), and the tag `irreversible` if its effect cannot be
undone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields
from datetime import timedelta

from airflow.sdk import Asset, Param

from weir.airflow.tasks import RETRIES
from weir.operations.entries import TEXT_PATTERN, Schema
from weir.operations.form import TEXTS, Form, is_required, json_schema
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
        schema = _schema(FORMS[job], one)
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


def _schema(form: type[Form], known: Field[object]) -> dict[str, object]:
    """Return the JSON schema of the argument's field in a form, which also accepts what people
    leave empty and paste.

    Airflow requires a field, and keeps its Trigger button disabled while the field is empty, unless
    "null" is one of its types. It sends null for an emptied field. A list is a text with one entry
    per line, so its entries come as texts, some of them blank; `parse` takes away
    what this schema adds.
    """
    of_job = json_schema(form, known)
    schema: dict[str, object] = {**of_job}
    schema.pop("uniqueItems", None)  # of lines, of which several may be blank
    schema |= _with_blanks(of_job, is_required(known))
    if of_job["type"] == "array":
        schema["items"] = _line(of_job["items"])
        named = {"contains": {"not": {"type": "string", "pattern": r"^\s*$"}}}
        if of_job.get("minItems"):
            schema |= named
        elif not of_job["items"].get("exact"):  # nothing but blank lines does not mean all
            schema |= {"if": {"minItems": 1}, "then": named}
    if not is_required(known):
        schema["type"] = [of_job["type"], "null"]
        schema.pop("minLength", None)
        if "enum" in of_job:
            schema["enum"] = [*of_job["enum"], None]
            schema["values_display"] = {"null": f"(default: {known.default})"}
    return schema


def _line(items: Schema) -> dict[str, object]:
    """Return the schema of a line of a list's field."""
    if blanks := _with_blanks(items, False):
        return {**items, **blanks}
    return {key: value for key, value in items.items() if key != "minLength"}


def _with_blanks(schema: Schema, required: bool) -> dict[str, str]:
    """Return the pattern for a text with blanks around it, or for nothing, unless required; with
    its words, because Airflow's error shows the schema. Nothing for a text without a pattern."""
    if (pattern := schema.get("pattern", TEXT_PATTERN)) == TEXT_PATTERN:
        return {}
    inner = pattern.removeprefix("^").removesuffix("$")
    blank = "" if required else "?"
    return {"allowed": TEXTS[pattern], "pattern": rf"^\s*({inner}){blank}\s*$"}


def _said(names: Sequence[str]) -> str:
    """Return a sentence with the names that there are."""
    if not names:
        return ""
    more = f" and {len(names) - MOST_SAID} more" if len(names) > MOST_SAID else ""
    return f" There are: {', '.join(names[:MOST_SAID])}{more}."
