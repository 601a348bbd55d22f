"""Streams as Airflow assets. An asset event is only a hint to run; Postgres records what
is unread."""

from airflow.sdk import Asset, AssetAlias

from weir.model.names import stream_name

# weir_ingest does not know its stream before it runs, so it announces it through an alias.
APPENDED = AssetAlias("weir-appended")


def stream_asset(stream: str) -> Asset:
    """Return the asset of a stream, to schedule a consumer's DAG by, or to name as a task's
    outlet."""
    name = stream_name(stream)
    return Asset(name=f"weir {name}", uri=f"weir://{name.scope}/{name.name}")
