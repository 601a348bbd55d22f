"""Release the events of a subscriber by hand, and read the alerts (semantics 11.8)."""

import json
from collections.abc import Sequence
from typing import TypedDict

from sqlalchemy import Connection

from weir.controller.cuts import load_cuts
from weir.controller.queries import Cut
from weir.controller.retention_queue import mark_retention_due
from weir.database.connection import Database
from weir.database.requests import Request
from weir.errors import Conflict, InvalidInput
from weir.front_ends import do
from weir.model.stream_cut import first_behind
from weir.queries.retention import release as sql
from weir.reader_groups.locks import LockedGroup, lock_group_and_streams
from weir.reader_groups.positions import positions_of
from weir.reader_groups.starting_points import find_cuts


class Released(TypedDict):
    """What a group has released: by stream the cut."""

    reader_group: str
    released: dict[str, Cut]


def release(
    database: Database, group: str, at: str, *, generation: int | None = None, request_id: str
) -> Released:
    """Release all events before a starting point: this subscriber holds them back no longer.

    `at`: `position` (where the group reads next) or one of those in
    `weir.reader_groups.starting_points`. `generation`: refuse another one. Raises NotFound;
    Conflict if the group does not release by hand, or has another generation; and InvalidInput if
    the cut is not valid, or lies before what the group has released already.
    """
    request = Request[Released](request_id, "release", group, {"at": at, "generation": generation})

    def work(connection: Connection) -> Released:
        streams, locked = lock_group_and_streams(connection, group)
        if (before := request.result(connection)) is not None:
            return before
        locked.must_be_of(generation)
        _must_release_by_hand(locked)
        if at.strip() == "position":
            cuts = positions_of(connection, locked, streams)
        else:
            cuts = find_cuts(connection, streams, at, locked.group_id)
        for row in sql.released(connection, group_id=locked.group_id, ids=sorted(cuts)):
            (released,) = load_cuts(connection, row.stream_id, row.released_cut)
            if (behind := first_behind(released, cuts[row.stream_id])) is not None:
                raise InvalidInput(
                    "position_invalid",
                    f"reader group {group} has already released events past this cut in segment "
                    f"{behind.name} (it released up to {released.to_text()}); give a cut at or "
                    "after that.",
                )
        listed = [{"stream": s, "cut": c.to_json()} for s, c in cuts.items()]
        sql.release(connection, cuts=json.dumps(listed), group_id=locked.group_id)
        mark_retention_due(connection, cuts)
        released_cuts = {str(s.name): cuts[s.stream_id].to_json() for s in streams}
        return request.done(connection, {"reader_group": group, "released": released_cuts})

    return database.transaction(work)


def read_alerts(database: Database, streams: Sequence[str]) -> list[str]:
    """Return the messages of the view retention_alerts about some streams, by time."""
    if not streams:
        return []
    return database.transaction(lambda c: sql.alerts(c, streams=list(streams)))


def _must_release_by_hand(group: LockedGroup) -> None:
    name = group.name
    if not group.configuration.subscriber:
        raise Conflict(
            "release_not_manual",
            f"reader group {group.name} is not a subscriber, so it has nothing to release; "
            "first "
            f"{do('update_reader_group', reader_group=name, subscriber='yes', release='manual')}.",
        )
    if group.configuration.release != "manual":
        raise Conflict(
            "release_not_manual",
            f"reader group {group.name} releases events at its checkpoints; first "
            f"{do('update_reader_group', reader_group=name, release='manual')}.",
        )
