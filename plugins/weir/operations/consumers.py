"""What a run of a consumer does: its own arguments, and those that were declared for its group."""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any

from sqlalchemy import Connection

from weir.errors import InvalidInput
from weir.front_ends import do
from weir.operations.form import parse
from weir.operations.runs import Process
from weir.reader_groups.groups.consumers import declared_consumer


def changed_settings(form: Process) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, without the group. Of a form of
    Airflow, which sends its defaults too, these are the ones that a person has given.
    """
    default = {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(form)
    }
    return {
        name: value
        for name, value in form.__dict__.items()
        if name != "reader_group" and value != default[name]
    }


def with_declared(connection: Connection, given: Mapping[str, Any]) -> Process:
    """Return the arguments that are given and not empty, with those declared for the group in place
    of the others. One that is given counts even if it is the default.

    Raises InvalidInput if neither names a function and outputs.
    """
    form = parse(Process, dict(given))
    group = form.reader_group
    filled = {
        name: value
        for name, value in form.__dict__.items()
        if given.get(name) is not None and value not in ("", [], {})
    }
    found = parse(Process, {**declared_consumer(connection, group), **filled})
    if not found.function or not found.outputs:
        raise InvalidInput(
            "argument_missing",
            f"no function and outputs are given, and no consumer is declared for reader group "
            f"{group}; give both, or declare it in a file and {do('apply', file='FILE')}.",
        )
    return found
