"""Check the definition of an adjunct store before it is stored: transforms with the columns of the
stream, functions with a batch without events. No event is read, and Spark is not needed."""

from collections.abc import Sequence

import pyarrow as pa

from weir.consumers.failures import sentence
from weir.consumers.store_outcomes import Function, called
from weir.consumers.store_parts import Part, check_written, parts_of
from weir.consumers.user_functions import load_function
from weir.controller.locks import read_stream
from weir.controller.streams import schema_by_id
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError
from weir.kernel.schema import to_arrow
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName, adjunct_store_name
from weir.model.schema import Field
from weir.settings import Settings


def check_definition(
    database: Database,
    settings: Settings,
    name: str,
    stream: StreamName,
    definition: AdjunctDefinition,
    planned: tuple[str, list[Field]] | None = None,
) -> None:
    """Check what a store makes of the events of a stream; only whether its parts can be understood,
    as long as the stream has no columns. `planned`: the routing key and the columns that the stream
    is to have; None: as it is.

    Raises NotFound for the stream, and InvalidInput with what is wrong.
    """
    adjunct_store_name(name)
    definition.check()
    if planned is None:
        locked = database.transaction(lambda c: read_stream(c, stream))
        fields = database.transaction(lambda c: schema_by_id(c, locked.stream_id))
        routing_key = locked.configuration.routing_key
    else:
        routing_key, fields = planned
    check_written(definition, name)
    functions = {
        one: load_function(one, settings.function_packages, settings.function_path)
        for one in definition.functions
    }
    if not fields:
        return
    parts = parts_of(definition, fields, routing_key, name)
    for part in (parts.key, parts.value):
        if part is not None and part.function:
            _call(functions[part.function], part, fields)


def _call(function: Function, part: Part, fields: Sequence[Field]) -> None:
    """Call a function with a batch without events."""
    schema = to_arrow(list(fields))
    batch = pa.RecordBatch.from_arrays([pa.array([], one.type) for one in schema], schema=schema)
    try:
        called(function, part.function, batch, part.arrow)
    except WeirError:
        raise
    except Exception as error:
        raise InvalidInput(
            "function_invalid",
            f"function {part.function} fails for a batch without events ({sentence(error)}); it "
            "must return an array without values.",
        ) from error
