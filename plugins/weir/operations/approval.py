"""What an action would lose, for a person who approves it; and the act, if nothing has moved since.

An action that may lose data has a `measure`. Who runs it where people can be asked (Airflow) shows
what it returns, and hands it back with the act, which compares it anew, under the locks of the act.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlalchemy import Connection, text

from weir.database.connection import Database
from weir.errors import Conflict
from weir.front_ends import give

OF = "of"  # the fact that says which things were meant, whatever their names
_THINGS = text(
    """SELECT 'stream ' || stream_name AS name, ARRAY[stream_id] AS numbers FROM stream
    WHERE stream_name = ANY(:streams) AND state <> 'deleted'
    UNION ALL SELECT 'group ' || name, ARRAY[group_id, generation] FROM reader_group
    WHERE name = ANY(:groups)
    UNION ALL SELECT 'store ' || name, ARRAY[store_id] FROM adjunct_store WHERE name = ANY(:stores)
    """
)


@dataclass(frozen=True)
class Loss:
    """What would be lost. `lines`: sentences for people. `facts`: what must be the same when it is
    done, as JSON. `arguments`: those that name the same places then, such as a cut for `tail`."""

    lines: list[str]
    facts: dict[str, object]
    arguments: dict[str, object] = field(default_factory=dict)

    @property
    def tried(self) -> list[str]:
        """What a dry run says: what would be lost, and how to do it."""
        return [*self.lines, f"nothing was done; to do it, {give(dry_run=False)}"]


def things(
    database: Database,
    *,
    streams: Iterable[str] = (),
    groups: Iterable[str] = (),
    stores: Iterable[str] = (),
) -> dict[str, object]:
    """Return, as a fact, which streams, groups and stores have some names now.

    What a loss counts only shrinks or only grows while these stay the same: heads and groups go
    forward, and holes grow. A group that goes back, or is changed, gets another generation. So with
    this fact other events in the same number are another loss.
    """
    given = {"streams": [*streams], "groups": [*groups], "stores": [*stores]}
    rows = database.transaction(lambda c: c.execute(_THINGS, given).all())
    return {OF: {row.name: list(row.numbers) for row in rows}}


def check_approved(approved: dict[str, object], now: Loss | None) -> None:
    """Raise Conflict if what would be lost now is not what was approved."""
    if now is not None and now.facts == approved:
        return
    lines = "nothing" if now is None else "; ".join(now.lines)
    raise Conflict(
        "approval_void",
        "the approval is void, because what would be lost has changed since; now it is this: "
        f"{lines}. Trigger it again, to be asked about that.",
    )


def is_done(connection: Connection, request_id: str) -> bool:
    """Return whether an earlier try has done what was approved."""
    done: bool = connection.execute(
        text("SELECT EXISTS (SELECT FROM request WHERE request_id = :id)"), {"id": request_id}
    ).scalar_one()
    return done
