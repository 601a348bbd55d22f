"""Check a consumer that a file declares, without running its function."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.model.stream_configuration import Configuration
from weir.settings import Settings
from weir.spark.consumers.outputs import Output, check_named_once
from weir.spark.consumers.places import check_order_known
from weir.spark.users.functions import check_function_name


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
            check_order_known(delivered, declared.get("order", "segment"), one)

    def there(connection: Connection) -> None:
        for one in outputs:
            if not (one.kind == "stream" and one.name in made):
                one.check(connection)

    database.transaction(there)
