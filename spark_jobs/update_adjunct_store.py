"""Change an adjunct store.

**Parameters.** What is left empty is not changed. The next build applies another value or delete
condition to the rows of the last version. Another key begins anew at the head of the stream, and
the report says since when the stream has events. Versions that exist keep what they are.

**On failure.** If anything is invalid, nothing is changed.
"""

from dataclasses import dataclass, replace
from typing import Any

from weir.adjunct.stores import read_store, update_store
from weir.errors import InvalidInput
from weir.model.adjunct_configuration import (
    AdjunctConfiguration,
    AdjunctDefinition,
)
from weir.model.amounts import parse_age
from weir.operations.action import STREAMS, Action, Job
from weir.operations.runner import main
from weir.operations.setting import settings_of
from weir.operations.store_settings import SETTINGS, store_argument


@dataclass(frozen=True)
class UpdateAdjunctStore:
    """Change an adjunct store. What is not given, empty or unchanged is not changed."""

    adjunct_store: str = store_argument()
    key: str = SETTINGS["key"].changed()
    value: str = SETTINGS["value"].changed()
    delete_when: str = SETTINGS["delete_when"].changed("Deletions and functions")
    key_type: str = SETTINGS["key_type"].changed("Deletions and functions")
    value_columns: str = SETTINGS["value_columns"].changed("Deletions and functions")
    layout: str = SETTINGS["layout"].changed("Joins")
    bootstrap: str = SETTINGS["bootstrap"].changed("Joins")
    missing: str = SETTINGS["missing"].changed("Joins")
    patience: int = SETTINGS["patience"].changed("Joins")
    null_key: str = SETTINGS["null_key"].changed("What is wrong or missing")
    on_error: str = SETTINGS["on_error"].changed("What is wrong or missing")
    on_gap: str = SETTINGS["on_gap"].changed("What is wrong or missing")
    keep_versions: str = SETTINGS["keep_versions"].changed("Retention")
    history: str = SETTINGS["history"].changed("Retention")
    time_out: str = SETTINGS["time_out"].changed("Retention")

    @property
    def changes(self) -> dict[str, Any]:
        """The settings of `AdjunctConfiguration` to change, by their names."""
        return settings_of(self, AdjunctConfiguration)

    @property
    def redefined(self) -> dict[str, str]:
        """The parts of `AdjunctDefinition` to change, by their names."""
        return settings_of(self, AdjunctDefinition)


def run(job: Job, arguments: UpdateAdjunctStore) -> dict[str, Any]:
    """Update one store. A changed definition is checked with the columns of the stream."""
    name = arguments.adjunct_store
    changes, redefined = arguments.changes, arguments.redefined
    if not (changes or redefined or arguments.time_out):
        raise InvalidInput("nothing_to_change", "no setting is given; give at least one.")
    if redefined:
        from weir.consumers.store_check import check_definition

        store = job.database.transaction(lambda c: read_store(c, name))
        wanted = replace(store.definition, **redefined)
        check_definition(job.database, job.settings, name, store.stream, wanted)
    return update_store(
        job.database, name, changes, redefined, time_out=parse_age(arguments.time_out),
        change_time_out=bool(arguments.time_out), request_id=job.request_id,
    )  # fmt: skip


def said(arguments: UpdateAdjunctStore, _report: dict[str, Any]) -> str:
    """Say what was changed."""
    changed = ", ".join([*arguments.changes, *arguments.redefined])
    return f"adjunct store {arguments.adjunct_store} is changed: {changed or 'time_out'}"


ACTION = Action(__file__, UpdateAdjunctStore, run, said, STREAMS, rehearsed=True)

if __name__ == "__main__":
    raise SystemExit(main(ACTION))
