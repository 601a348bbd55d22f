"""Tell Airflow to which streams a task has appended: by events of their assets, which are hints for
schedules, with the numbers of the transactions and how many events they have."""

from collections.abc import Sequence
from typing import Any

from weir.airflow.assets import APPENDED, stream_asset
from weir.database.connection import Database
from weir.model.names import stream_name
from weir.reader_groups.groups.consumers import declared_consumer
from weir.settings import Settings

Appended = dict[str, list[dict[str, Any]]]  # by stream, the reports of what was committed


def with_outlets(given: Any, arguments: dict[str, Any] | None) -> list[Any]:
    """Return the outlets of a task that appends: those that are given, the asset of the stream that
    its arguments name, and for others an alias."""
    outlets = given or []
    outlets = [*outlets] if isinstance(outlets, (list, tuple)) else [outlets]
    stream = (arguments or {}).get("stream")
    named = [APPENDED]
    if isinstance(stream, str) and "{" not in stream:  # else it is known when the task runs
        named = [stream_asset(stream)]
    return [*outlets, *(one for one in named if one not in outlets)]


def announce(context: Any, outlets: Sequence[Any], appended: Appended) -> None:
    """Announce the streams through their own assets, where these are outlets of the task, and
    through the alias, if that is one."""
    for stream, commits in sorted(appended.items()):
        asset = stream_asset(stream)
        numbers = [one["transaction_number"] for one in commits]
        extra = {"transactions": numbers, "events": sum(one["events"] for one in commits)}
        if asset in outlets:
            context["outlet_events"][asset].extra = extra
        elif APPENDED in outlets:
            context["outlet_events"][APPENDED].add(asset, extra=extra)


def appended_by(
    settings: Settings, parsed: Any, report: dict[str, Any] | None, try_number: int
) -> Appended:
    """Return the streams to which a job with these arguments has appended, by its report; those of
    earlier tries without one."""
    if hasattr(parsed, "stream"):
        return {str(stream_name(parsed.stream)): [report] if report else []}
    appended: Appended = {}
    for batch in (report or {}).get("batches", []):
        for one in batch["streams"]:
            appended.setdefault(one["stream"], []).append(one)
    if try_number > 1 and hasattr(parsed, "outputs"):  # one that failed may have committed batches
        for output in parsed.outputs or _declared_outputs(settings, parsed.reader_group):
            kind, _, name = output.split()[0].partition(":")
            if kind == "stream":
                appended.setdefault(name, [])
    return appended


def _declared_outputs(settings: Settings, reader_group: str) -> list[str]:
    with Database.of(settings) as database:
        declared = database.transaction(lambda c: declared_consumer(c, reader_group))
    return list(declared.get("outputs", []))
