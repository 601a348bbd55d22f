"""An action as a page shows it: its form, filled in, the command that does the same, and what is
wrong with what was filled in. Nothing here starts it: a browser asks Airflow for a run."""

import json
from collections.abc import Callable
from dataclasses import Field as Argument
from dataclasses import fields
from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel

from weir.errors import InvalidInput, NotFound
from weir.front_ends import speaking_to_one, typed
from weir.operations.form import Form as Arguments
from weir.operations.form import default_of, is_required, json_schema, parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.pages.answering import Tagged

LONGEST = 20_000  # characters of what is filled in, which is in an address


class Field(BaseModel):
    """A field of the form. `value`: what it begins with."""

    name: str
    title: str
    description: str
    json_schema: dict[str, object]
    required: bool
    value: object
    section: str
    examples: list[str]
    multiline: bool


class Trigger(BaseModel):
    """Where a browser asks for a run, as an address beside the pages; or why this person can't."""

    dag_id: str
    address: str | None
    refused: str | None


class Form(BaseModel):
    """An action with its form. `command`: what does the same in a terminal. `problem`: what is
    wrong with what is given, in a sentence; `incomplete`: only that something is still to be
    filled in. `approved`: whether a run waits until a person approves what it would lose."""

    action: str
    about: str
    irreversible: bool
    approved: bool
    fields: list[Field]
    command: str
    problem: str | None
    incomplete: bool
    trigger: Trigger | None


def nowhere() -> None:
    """Say that nothing can be triggered here: there is no Airflow."""


def router_of(trigger: Callable[..., Trigger | None]) -> APIRouter:
    """Return the addresses. `trigger`: a dependency, which the path gives an `action`."""
    router = APIRouter(route_class=Tagged, tags=["actions"])

    @router.get("/actions/{action}")
    def show_action(
        action: str,
        trigger: Annotated[Trigger | None, Depends(trigger)],
        given: Annotated[
            str, Query(max_length=LONGEST, description="what is filled in, as a JSON object")
        ] = "{}",
    ) -> Form:
        """Return an action with its form, filled in. It starts nothing, and asks no database."""
        return form_of(action, _object(given), trigger)

    return router


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text, parse_constant=_no_number)
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or _is_deep(found):
        raise InvalidInput(
            "argument_invalid",
            'given is no JSON object of the form\'s fields; write one, such as {"stream": "a/b"}.',
        )
    return found


def _no_number(name: str) -> object:
    raise ValueError(name)


def _is_deep(value: object, left: int = 10) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left == 0 or any(_is_deep(one, left - 1) for one in inner)


def form_of(action: str, given: dict[str, object], trigger: Trigger | None) -> Form:
    """Return an action with its form. Raises NotFound for an action that there is not."""
    if action not in ACTIONS:
        raise NotFound("action_not_found", f"there is no action {action!r}.")
    found, form = ACTIONS[action], FORMS[action]
    shown = [_field(form, one) for one in fields(form)]
    filled = {one.name: one.value for one in shown if one.value is not None} | given
    command, problem, incomplete = "", None, False
    with speaking_to_one("form", FORMS, action):
        try:
            parsed = parse(form, filled)
            command = typed(action, _needed(form, parsed))
        except InvalidInput as error:
            problem, incomplete = error.sentence, error.code == "argument_missing"
    return Form(
        action=action,
        about=" ".join((form.__doc__ or "").split()),
        irreversible=found.irreversible,
        approved=found.measure is not None,
        fields=shown,
        command=command,
        problem=problem,
        incomplete=incomplete,
        trigger=trigger,
    )


def _needed(form: type[Arguments], parsed: Arguments) -> dict[str, object]:
    """Return the arguments that are not what a command has by itself."""
    values = {one.name: (getattr(parsed, one.name), _default(one)) for one in fields(form)}
    return {name: value for name, (value, own) in values.items() if value != own}


def _field(form: type[Arguments], one: Argument[object]) -> Field:
    begun = one.metadata["in_forms"]
    shown = one.metadata["shown"]
    return Field(
        name=one.name,
        title=one.metadata["title"],
        description=one.metadata["description"],
        json_schema=dict(json_schema(form, one)),
        required=is_required(one),
        value=_default(one) if begun is None else begun,
        section=shown.get("section", ""),
        examples=shown.get("examples", []),
        multiline=shown.get("format") == "multiline",
    )


def _default(one: Argument[object]) -> object:
    return None if is_required(one) else default_of(one)
