"""Make methods of the actions that forms and commands have, of the same descriptions
(the jobs): the same names, defaults, checks and errors."""

import inspect
from collections.abc import Callable
from dataclasses import Field, fields, replace
from typing import Literal, get_type_hints

from weir.errors import InvalidInput
from weir.installation.opened import Installation
from weir.operations.action import Job
from weir.operations.form import Form, default_of, is_required, json_schema
from weir.operations.jobs import ACTIONS
from weir.operations.runner import by_hand, perform, record_failure


class Acting(Installation):
    """An installation in which actions run."""

    def act(self, action: str, given: dict[str, object]) -> dict[str, object]:
        """Run an action in this process, as its job does, with the arguments that are given. Return
        its report, which the view weir.job_runs has, too. Raises what the action raises."""
        settings = self.settings
        for name in ("function", "manager"):  # who writes a program may run any code in it
            if isinstance(function := given.get(name), str):
                package = function.partition(":")[0].partition(".")[0]
                packages = (*settings.function_packages, package)
                settings = replace(settings, function_packages=packages)
        database = self.database.for_one_run()
        job = Job(
            action, by_hand(action), settings, database, log=self.say, start_spark=self.start_spark
        )
        try:
            return perform(job, ACTIONS[action], {n: _listed(v) for n, v in given.items()})
        except (Exception, KeyboardInterrupt) as error:
            record_failure(job, error)
            raise


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def method_of(action: str, form: type[Form]) -> Callable[..., dict[str, object]]:
    """Return the method that runs an action with the arguments of its form."""
    known = fields(form)
    subjects = [one.name for one in known if is_required(one)]

    def method(self: Acting, *args: object, **given: object) -> dict[str, object]:
        if len(args) > len(subjects):
            raise InvalidInput(
                "argument_invalid",
                f"{action} takes {len(subjects)} arguments without their names, and "
                f"{len(args)} are given; name all but {', '.join(subjects) or 'none'}.",
            )
        placed = dict(zip(subjects, args, strict=False))
        if twice := placed.keys() & given.keys():
            raise InvalidInput(
                "arguments_conflict",
                f"{action} is given {min(twice)} by its place and by its name; give it once.",
            )
        return self.act(action, placed | given)

    method.__name__, method.__qualname__ = action, f"Actions.{action}"
    method.__doc__ = _described(form)
    method.__signature__ = _signature(action, form)  # type: ignore[attr-defined]  # for help() and inspect
    return method


def _signature(action: str, form: type[Form]) -> inspect.Signature:
    """Return the signature for `help`: an argument that is required may be given by its place."""
    kinds = get_type_hints(form)
    return inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(
                inspect.Parameter(
                    one.name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD
                    if is_required(one)
                    else inspect.Parameter.KEYWORD_ONLY,
                    default=inspect.Parameter.empty if is_required(one) else default_of(one),
                    annotation=_kind(form, one, kinds[one.name]),
                )
                for one in fields(form)
            ),
        ],
        return_annotation=inspect.signature(ACTIONS[action].run).return_annotation,
    )


def _kind(form: type[Form], known: Field[object], kind: object) -> object:
    choices = json_schema(form, known).get("enum")
    return Literal[tuple(choices)] if choices else kind


def _described(form: type[Form]) -> str:
    """Return the text for `help`: what the action does, and what its arguments mean."""
    lines = [inspect.cleandoc(form.__doc__ or ""), ""]
    for one in fields(form):
        choices = json_schema(form, one).get("enum")
        among = f" One of {', '.join(map(str, choices))}." if choices else ""
        lines.append(f"`{one.name}`: {one.metadata['description']}{among}")
    lines += [
        "",
        "Returns the report of the run, which the view weir.job_runs has, too. Raises InvalidInput "
        "for a wrong argument, and the errors of the action.",
    ]
    return "\n".join(lines)
