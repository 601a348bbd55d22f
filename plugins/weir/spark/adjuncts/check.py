"""Check the definition of an adjunct store before it is stored: expressions with the columns of the
stream, functions with a batch without events."""

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from weir.consumers.user_functions import load_function
from weir.controller.locks import read_stream
from weir.controller.streams import schema_by_id
from weir.database.connection import Database
from weir.errors import InvalidInput, WeirError
from weir.model.adjunct_configuration import AdjunctDefinition
from weir.model.names import StreamName, adjunct_store_name
from weir.model.schema import Field, without_metadata
from weir.settings import Settings
from weir.spark.adjuncts.changes import changes_of_nothing, parse_type, parse_types
from weir.spark.adjuncts.functions import called
from weir.spark.base.session import private_session
from weir.spark.failures.causes import sentence
from weir.spark.users.expressions import check_expression


def check_definition(
    spark: SparkSession,
    database: Database,
    settings: Settings,
    name: str,
    stream: StreamName,
    definition: AdjunctDefinition,
    planned: tuple[str, list[Field]] | None = None,
) -> None:
    """Check what a store makes of the events of a stream; only whether its expressions are allowed,
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
    session = private_session(spark)
    for what, function, declared in (
        ("key", definition.key, definition.key_type and f"value {definition.key_type}"),
        ("value", definition.value, definition.value_columns),
    ):
        if declared:
            if what == "key":
                parse_type(definition.key_type)
            kind = parse_types(declared, "key_type" if what == "key" else "value_columns")
            _check_function(function, settings, fields, kind, is_key=what == "key")
    if not fields:
        texts = {"key": definition.key, "value": definition.value}
        for what, text in {**texts, "delete condition": definition.delete_when}.items():
            if text and text not in definition.functions:
                check_expression(text, f"{what} of adjunct store {name},", session)
        return
    changes_of_nothing(session, fields, definition, routing_key, name, settings)


def _check_function(
    name: str,
    settings: Settings,
    fields: list[dict[str, object]],
    kind: StructType,
    *,
    is_key: bool,
) -> None:
    """Load a function, and call it with a batch without events."""
    function = load_function(name, settings.function_packages, settings.function_path)
    if not fields:
        return
    schema = StructType.fromJson({"type": "struct", "fields": without_metadata(fields)})
    arrow = to_arrow_schema(schema)
    batch = pa.RecordBatch.from_arrays([pa.array([], field.type) for field in arrow], schema=arrow)
    wanted = to_arrow_schema(kind)
    try:
        called(function, name, batch, wanted.field(0).type if is_key else pa.struct(wanted))
    except WeirError:
        raise
    except Exception as error:
        raise InvalidInput(
            "function_fails",
            f"function {name} fails for a batch without events ({sentence(error)}); it must return "
            "an array without values.",
        ) from error
