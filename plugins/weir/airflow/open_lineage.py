"""What a task read and wrote, for OpenLineage, where its provider is installed and enabled.

The provider asks an operator when a task has ended, and sends the events. Nothing of it is imported
before it asks.
"""

from typing import TYPE_CHECKING, NamedTuple

from sqlalchemy import Connection, text

from weir.controller.locks import read_stream
from weir.controller.streams import schema_by_id
from weir.errors import NotFound
from weir.history.job_runs import RunId
from weir.history.lineage import lineage_of
from weir.model.names import stream_name

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage


class Thing(NamedTuple):
    """A stream, file, store, folder or table in OpenLineage's names, with its columns if known."""

    namespace: str
    name: str
    columns: tuple[tuple[str, str], ...] = ()


class Things(NamedTuple):
    """What a run read and what it committed, as inputs and outputs for OpenLineage."""

    inputs: list[Thing]
    outputs: list[Thing]


def things_of(connection: Connection, run: RunId) -> Things:
    """Return what a run read and wrote in all its commits, each once and by name."""
    mine = [one for one in lineage_of(connection, str(run), depth=0) if one.side is not None]
    found: dict[str, dict[Thing, None]] = {"read": {}, "wrote": {}}
    known = connection.execute(text("SELECT installation_id FROM installation")).scalar_one()
    namespace = f"weir://{known}"
    for one in mine:
        assert one.side is not None
        name = str(one.name)
        if one.kind == "stream":
            thing = Thing(namespace, name, _columns(connection, name))
        elif one.kind in ("file", "parquet"):
            scheme, _, rest = name.partition("://")
            host, _, path = rest.partition("/")
            thing = Thing(f"{scheme}://{host}", path) if rest else Thing("file", name)
        else:  # a table of Weir's database, or a store
            thing = Thing(namespace, name)
        found[one.side][thing] = None
    return Things(list(found["read"]), list(found["wrote"]))


def _columns(connection: Connection, stream: str) -> tuple[tuple[str, str], ...]:
    """Return the columns of a stream; none if it was deleted meanwhile."""
    try:
        stream_id = read_stream(connection, stream_name(stream)).stream_id
    except NotFound:
        return ()
    return tuple(
        (one["name"], one["type"] if isinstance(one["type"], str) else str(one["type"]["type"]))
        for one in schema_by_id(connection, stream_id)
    )


def as_open_lineage(things: Things) -> "OperatorLineage":
    """Return it as the provider wants it. Needs apache-airflow-providers-openlineage."""
    from airflow.providers.common.compat.openlineage.facet import (
        Dataset,
        SchemaDatasetFacet,
        SchemaDatasetFacetFields,
    )
    from airflow.providers.openlineage.extractors import OperatorLineage

    def dataset(thing: Thing) -> Dataset:
        fields = [SchemaDatasetFacetFields(name=n, type=kind) for n, kind in thing.columns]
        facets = {"schema": SchemaDatasetFacet(fields=fields)} if fields else {}
        return Dataset(namespace=thing.namespace, name=thing.name, facets=facets)

    return OperatorLineage(
        inputs=[dataset(one) for one in things.inputs],
        outputs=[dataset(one) for one in things.outputs],
    )
