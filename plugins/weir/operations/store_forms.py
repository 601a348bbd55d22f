"""The form by which adjunct stores are defined: of a job, and of entries in declarations."""

from dataclasses import dataclass

from weir.model.adjunct_configuration import (
    AdjunctConfiguration,
    AdjunctDefinition,
)
from weir.model.names import READABLE_STREAM_PATTERN
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
