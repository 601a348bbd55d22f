"""What a run of a consumer does: its own arguments, and those that were declared for its group; and
the check of what a file declares, without running it."""

from collections.abc import Collection, Mapping
from dataclasses import MISSING, fields
from typing import Any

from sqlalchemy import Connection

from weir.consumers.outputs import Output, check_named_once
from weir.consumers.places import check_order_known
from weir.consumers.user_functions import check_function_name
from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import do
from weir.model.stream_configuration import Configuration
from weir.operations.expressions import key_columns
from weir.operations.form import parse
from weir.operations.runs import Process
from weir.reader_groups.groups.consumers import declared_consumer
from weir.settings import Settings


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


def check_consumer(
    database: Database,
    settings: Settings,
    group: str,
    declared: Mapping[str, Any],
    streams: Mapping[str, Configuration],
    made: Collection[str],
) -> None:
    """Check the name of a consumer's function and its outputs, as its first run would.

    `declared`: its arguments of `weir_process`. `streams`: the settings of those that its
    group reads. `made`: streams that need not exist yet. Raises InvalidInput, or NotFound for a
    stream or table that does not exist.
    """
    check_function_name(declared["function"], settings.function_packages)
    outputs = [Output.parse(one, settings.output_roots) for one in declared["outputs"]]
    check_named_once(outputs)
    # What a manager or a store keeps from being delivered is known when it runs.
    delivered = streams if not {"adjuncts", "manager"} & set(declared) else {}
    for one in outputs:
        one.check_not_input(group, delivered)
        if one.publication.ordered:
            check_order_known(key_columns, delivered, declared.get("order", "segment"), one)

    def there(connection: Connection) -> None:
        for one in outputs:
            if not (one.kind == "stream" and one.name in made):
                one.check(connection)

    database.transaction(there)
