"""What a run of a consumer does: its own arguments, and those that were declared for its group."""

from dataclasses import MISSING, fields
from typing import Any

from sqlalchemy import Connection

from weir.errors import InvalidInput
from weir.operations.form import parse
from weir.operations.runs import Process
from weir.reader_groups.consumers import declared_consumer


def given_settings(form: Process) -> dict[str, Any]:
    """Return the arguments that differ from their defaults, without the group."""
    default = {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(form)
    }
    return {
        name: value
        for name, value in form.__dict__.items()
        if name != "reader_group" and value != default[name]
    }


def with_declared(connection: Connection, form: Process) -> Process:
    """Return the arguments, with those declared for the group where they have their defaults.

    Raises InvalidInput if neither names a function and outputs.
    """
    declared = declared_consumer(connection, form.reader_group)
    given = {"reader_group": form.reader_group, **declared, **given_settings(form)}
    found = parse(Process, given)
    if not found.function or not found.outputs:
        raise InvalidInput(
            "argument_missing",
            f"no function and outputs are given, and no consumer is declared for reader group "
            f"{form.reader_group}; fill in both, or declare it with weir_apply.",
        )
    return found
