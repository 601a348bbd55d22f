"""The forms by which adjunct stores are defined and changed: of jobs, and of entries in
declarations."""

from dataclasses import dataclass

from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.amounts import parse_age
from weir.model.names import READABLE_STREAM_PATTERN, stream_name
from weir.operations.asked import AskedStore
from weir.operations.form import Form, stream_argument
from weir.operations.setting import settings_of, with_settings
from weir.operations.store_settings import SETTINGS, store_argument


@with_settings(SETTINGS)
@dataclass(frozen=True)
class DefineAdjunctStore:
    """Define an adjunct store: a keyed table that is kept from a stream."""

    adjunct_store: str = store_argument("The name of the new store, scope/name.", new=True)
    stream: str = stream_argument(
        "The stream of changes, as scope/stream.", READABLE_STREAM_PATTERN
    )

    @property
    def asked(self) -> AskedStore:
        """What the store is to be. Raises InvalidInput for a wrong setting."""
        return AskedStore(self.adjunct_store, store_settings_of(self), stream_name(self.stream))


@with_settings(SETTINGS, changed=())
@dataclass(frozen=True)
class UpdateAdjunctStore:
    """Change an adjunct store. What is not given, empty or unchanged is not changed."""

    adjunct_store: str = store_argument()

    @property
    def changes(self) -> dict[str, object]:
        """The settings to change, by their names. Raises InvalidInput for a wrong amount."""
        return store_settings_of(self)

    @property
    def asked(self) -> AskedStore:
        """What is to change. Raises InvalidInput for a wrong setting."""
        return AskedStore(self.adjunct_store, self.changes)


def store_settings_of(form: Form) -> dict[str, object]:
    """Return the settings of a store that a form gives: how it is kept, how it makes keys and
    values, and its time-out."""
    given = settings_of(form, AdjunctConfiguration) | settings_of(form, AdjunctDefinition)
    time_out = form.__dict__["time_out"]
    return given | ({"time_out": parse_age(time_out)} if time_out.strip() else {})
