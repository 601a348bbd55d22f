"""An operator for each action, made of the action's own description: the same arguments, defaults
and checks as its form, its command and its method. Type checkers and editors see the same ones in
actions.pyi, which `make docs` writes."""

import inspect
from typing import Any

from weir.airflow.operators import WeirJobOperator
from weir.front_ends import RENAMED, operator_name, speaking
from weir.operations.form import parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.programs.actions import method_of

# What all operators take beside the arguments of their action; other keywords are Airflow's.
OWN = {"engine": "spark", "conn_id": "", "spark_conn_id": ""}
# And those of an action that may lose data.
ASKING = {"approval": True}


class ActionOperator(WeirJobOperator):
    """Run one action: the base of the operators that are made of actions.

    :param engine: "spark" runs a PySpark job, with the Spark that the setting `spark` names, or
        submitted; "submit" submits it in any case; "pyarrow" runs the action in the worker, without
        Spark; "auto" does that if the action needs none.
    :param conn_id: a connection of type Weir, which names the installation. Default: that of
        WEIR_CONFIG or `weir.toml`.
    :param spark_conn_id: the connection of Spark to which jobs are submitted (spark_default).
    """

    action = ""  # its name in `weir.operations.jobs`

    def __init__(self, **given: Any) -> None:
        known = [one.name for one in _arguments(self.action)]
        arguments = {name: given.pop(RENAMED.get(name, name)) for name in known
                     if RENAMED.get(name, name) in given}  # fmt: skip
        if "engine" in arguments:  # a consumer computes with what its task runs with
            given["engine"] = arguments["engine"]
            if arguments["engine"] == "submit":
                arguments["engine"] = "spark"
        # A mistake is one of the DAG file, then. One in a list is told by its own task.
        mapped = getattr(self, "_BaseOperator__from_mapped", False)
        if _is_literal(arguments) and not mapped:
            with speaking("dag", FORMS, self.action):
                parse(FORMS[self.action], arguments)
        super().__init__(**{**OWN, **given}, job=self.action, arguments=arguments)


def _is_literal(value: object) -> bool:
    """Return whether a value is known while the DAG file is read: no template is in it, and nothing
    that another task returns."""
    if isinstance(value, dict):
        return all(map(_is_literal, value.values()))
    if isinstance(value, (list, tuple)):
        return all(map(_is_literal, value))
    if isinstance(value, str):
        return not any(begin in value for begin in ("{{", "{%", "{#"))
    return isinstance(value, (int, float, bool, type(None)))


def _arguments(action: str) -> list[inspect.Parameter]:
    """Return the arguments of an action, as its method has them."""
    found = inspect.signature(method_of(action, FORMS[action])).parameters.values()
    return [one for one in found if one.name != "self"]


def signature_of(action: str) -> inspect.Signature:
    """Return the signature of an action's operator: its arguments, by name, then OWN and those that
    every task of Airflow takes."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    named = [
        one.replace(name=RENAMED.get(one.name, one.name), kind=keyword)
        for one in _arguments(action)
    ]
    taken = [one.name for one in named]
    own_here = OWN | (ASKING if ACTIONS[action].measure else {})
    own = [
        inspect.Parameter(name, keyword, default=default, annotation=type(default))
        for name, default in own_here.items()
        if name not in taken
    ]
    first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    rest = inspect.Parameter("kwargs", inspect.Parameter.VAR_KEYWORD, annotation=object)
    return inspect.Signature([first, *named, *own, rest], return_annotation=None)


def _operator(action: str) -> type[ActionOperator]:
    def __init__(self: ActionOperator, **given: object) -> None:
        ActionOperator.__init__(self, **given)

    # Airflow reads it for what is required and what a DAG's default arguments may have.
    __init__.__signature__ = signature_of(action)  # type: ignore[attr-defined]
    form = FORMS[action]
    members = {
        "__init__": __init__, "__module__": __name__, "action": action,
        "__doc__": method_of(action, form).__doc__,
    }  # fmt: skip
    return type(operator_name(action), (ActionOperator,), members)


__all__ = [operator_name(_action) for _action in ACTIONS]
globals().update({operator_name(_action): _operator(_action) for _action in ACTIONS})
