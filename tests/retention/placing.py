"""Puts a stream into any situation that retention may find, without the history leading there."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.model.retention_policy import Policy


def record(lane: Lane, tails: Iterable[tuple[float, Mapping[str, Any], int]]) -> None:
    """Let these tails have been recorded, each so many seconds ago and behind so many bytes."""
    found = [{"age": age, "cut": cut, "bytes": bytes_} for age, cut, bytes_ in tails]
    run(lane.database, "DELETE FROM stream_cut WHERE stream_id = :s", s=lane.stream_id)
    run(
        lane.database,
        """INSERT INTO stream_cut (stream_id, stream_name, recorded_at, clock, cut, events, bytes)
        SELECT :s, :name, clock_timestamp() - r.age * interval '1 second', 1, r.cut, 0, r.bytes
        FROM jsonb_to_recordset(CAST(:records AS jsonb)) r (age float, cut jsonb, bytes bigint)""",
        s=lane.stream_id, name=str(lane.name), records=json.dumps(found),
    )  # fmt: skip


def let_release(group: Group, cut: Mapping[str, Any], subscriber: bool = True) -> None:
    """Let a group have released what lies before a cut, and be a subscriber or not."""
    run(
        group.database,
        """WITH released AS (
            UPDATE reader_group_stream SET released_cut = CAST(:cut AS jsonb) WHERE group_id = :g)
        UPDATE reader_group SET subscriber = :subscriber WHERE group_id = :g""",
        g=group.group_id, cut=json.dumps(cut), subscriber=subscriber,
    )  # fmt: skip


def limit(lane: Lane, policy: Policy) -> None:
    """Let a stream have a policy that makes sense."""
    policy.check()
    run(
        lane.database,
        """UPDATE stream SET retention = :retention, retain_min_age = :min_age,
            retain_max_age = :max_age, retain_min_bytes = :min_bytes, retain_max_bytes = :max_bytes
        WHERE stream_id = :s""",
        s=lane.stream_id, **policy.__dict__,
    )  # fmt: skip
