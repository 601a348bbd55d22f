"""Define an adjunct store.

**Parameters.** Its name, the stream of changes, and how a key and a value are made of an event; all
have defaults: the routing key of the stream, and all columns of the event. From this moment on the
store is a subscriber of its stream. `weir_adjunct` builds its first version within five minutes.

**On failure.** If anything is invalid, nothing is defined.
"""

from dataclasses import dataclass
from typing import Any

from weir.adjunct.stores import define_store
from weir.model.adjunct_configuration import (
    AdjunctConfiguration,
    AdjunctDefinition,
)
from weir.model.amounts import parse_age
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.operations.action import STREAMS, Action, Job
from weir.operations.form import stream_argument
from weir.operations.setting import settings_of
from weir.operations.store_settings import SETTINGS, store_argument


@dataclass(frozen=True)
class DefineAdjunctStore:
    """Define an adjunct store: a keyed table that is kept from a stream."""

    adjunct_store: str = store_argument("The name of the new store, scope/name.", new=True)
    stream: str = stream_argument(
        "The stream of changes, as scope/stream.", READABLE_STREAM_PATTERN
    )
    key: str = SETTINGS["key"].created()
    value: str = SETTINGS["value"].created()
    delete_when: str = SETTINGS["delete_when"].created("Deletions and functions")
    key_type: str = SETTINGS["key_type"].created("Deletions and functions")
    value_columns: str = SETTINGS["value_columns"].created("Deletions and functions")
    layout: str = SETTINGS["layout"].created("Joins")
    bootstrap: str = SETTINGS["bootstrap"].created("Joins")
    missing: str = SETTINGS["missing"].created("Joins")
    patience: int = SETTINGS["patience"].created("Joins")
    null_key: str = SETTINGS["null_key"].created("What is wrong or missing")
    on_error: str = SETTINGS["on_error"].created("What is wrong or missing")
    on_gap: str = SETTINGS["on_gap"].created("What is wrong or missing")
    keep_versions: str = SETTINGS["keep_versions"].created("Retention")
    history: str = SETTINGS["history"].created("Retention")
    time_out: str = SETTINGS["time_out"].created("Retention")

    @property
    def definition(self) -> AdjunctDefinition:
        """How it makes keys and values."""
        return AdjunctDefinition(**settings_of(self, AdjunctDefinition))

    @property
    def configuration(self) -> AdjunctConfiguration:
        """Its settings. Raises InvalidInput for a wrong one."""
        return AdjunctConfiguration().changed(settings_of(self, AdjunctConfiguration))


def run(job: Job, arguments: DefineAdjunctStore) -> dict[str, Any]:
    """Check the definition with the columns of the stream, then define the store."""
    from weir.spark.adjuncts.check import check_definition

    stream, definition = stream_name(arguments.stream), arguments.definition
    configuration = arguments.configuration
    check_definition(
        job.spark, job.database, job.settings, arguments.adjunct_store, stream, definition
    )
    made = define_store(
        job.database, arguments.adjunct_store, stream, configuration, definition,
        time_out=parse_age(arguments.time_out), request_id=job.request_id,
    )  # fmt: skip
    job.say_all([*made["missing"], *made["deletes"]])
    return made


def said(arguments: DefineAdjunctStore, _report: dict[str, Any]) -> str:
    """Say what was defined."""
    return f"adjunct store {arguments.adjunct_store} is defined; its first build fills it"


ACTION = Action(DefineAdjunctStore, run, said, STREAMS, uses_spark=True)
