"""All that is known about a reader group, in words that are the same for groups with the same past:
without ids and times, of clocks only what they order.
"""

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.world.streams import Lane, rows
from weir.database.connection import Database

_TABLES = "reader_group reader_group_stream reader reader_batch reader_group_segment checkpoint"
_TIMES = set(
    """created_at moved_at checkpointed_at released_at joined_at lease_until opened_at committed_at
    expires_at ended_at newest_read passed_clock up_to subscriber_since""".split()
)
_OWN = {"group_id", "stream_id"}


def state_of_group(database: Database, name: str, lanes: Sequence[Lane]) -> tuple[str, ...]:
    """Return a group's rows, its requests and its garbage, in words that are the same for groups
    with the same past."""
    queries = [
        f"SELECT '{table}' AS what, to_jsonb(t) AS row FROM {table} t JOIN this USING (group_id)"
        for table in _TABLES.split()
    ]
    found = rows(
        database,
        f"""WITH this AS (SELECT group_id FROM reader_group WHERE name = :name)
        {" UNION ALL ".join(queries)}
        UNION ALL SELECT 'garbage', jsonb_build_object('path', path) FROM garbage
            WHERE path LIKE '%group=' || :name || '/%'
        UNION ALL SELECT 'request', jsonb_build_object('operation', operation) FROM request
            WHERE object = :name""",
        name=name,
    )
    return tuple(sorted(told([one.what, _kept(one.row)], [name], lanes) for one in found))


def told(value: Any, groups: Sequence[str], lanes: Sequence[Lane]) -> str:
    """Return a value as text, with the names and numbers of these groups and streams left out."""
    text = json.dumps(value, sort_keys=True, default=str)
    for i, group in enumerate(groups):
        text = re.sub(rf"\b{group}\b", f"group {i}", text)
    for i, lane in enumerate(lanes):
        text = re.sub(rf"{lane.name}\b", f"stream {i}", text)
        text = text.replace(f'"{lane.stream_id}"', f'"stream {i}"')
        text = re.sub(rf'"stream": {lane.stream_id}\b', f'"stream": {i}', text)
    text = re.sub(r'"test/stream-\d+", "stream_id": \d+', '"another stream"', text)
    return re.sub(r"automatic-\d+", "automatic", text)


def _kept(row: dict[str, Any]) -> dict[str, Any]:
    """Return what of a row is compared; of a time only whether there is one."""
    return {
        key: value is not None if key in _TIMES else value
        for key, value in row.items()
        if key not in _OWN
    }
