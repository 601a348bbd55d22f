"""Streams as Airflow assets. Their events are hints; what is new, Postgres knows."""

from airflow.sdk import Asset, AssetAlias

from weir.model.names import stream_name

# weir_ingest does not know its stream before it runs, so it announces it through an alias.
APPENDED = AssetAlias("weir-appended")


def stream_asset(stream: str) -> Asset:
    """The asset of a stream: schedule a consumer's DAG by it, or name it as a task's outlet."""
    name = stream_name(stream)
    return Asset(name=f"weir {name}", uri=f"weir://{name.scope}/{name.name}")
