"""Streams as Airflow assets. The triggerer announces what is committed to them, whoever appended
it. An asset event is only a hint to run; Postgres records what is unread."""

from collections.abc import Mapping

from airflow.sdk import Asset, AssetWatcher

from weir.airflow.watcher import StreamTrigger
from weir.model.names import stream_name


def stream_asset(stream: str) -> Asset:
    """Return the asset of a stream, to schedule a DAG by.

    Its events are the commits to the stream (semantics 19.1); no task needs to name it as its
    outlet.
    """
    name = stream_name(stream)
    return Asset(
        name=f"weir {name}",
        uri=f"weir://{name.scope}/{name.name}",
        watchers=[AssetWatcher(name="weir", trigger=StreamTrigger(str(name)))],
    )


def with_stream(given: object, arguments: Mapping[str, object] | None) -> list[object]:
    """Return the outlets of a task that appends: those that are given, and the asset of the stream
    that its arguments name, so that Airflow's graph shows it."""
    outlets = given or []
    outlets = [*outlets] if isinstance(outlets, (list, tuple)) else [outlets]
    stream = (arguments or {}).get("stream")
    if isinstance(stream, str) and "{" not in stream:  # else it is known when the task runs
        asset = stream_asset(stream)
        outlets += [asset] if asset not in outlets else []
    return outlets


def without_streams(outlets: list[object]) -> list[object]:
    """Return the outlets of which a task that ends makes events: all but assets of streams, which
    the triggerer announces."""
    return [
        one for one in outlets if not (isinstance(one, Asset) and one.uri.startswith("weir://"))
    ]
