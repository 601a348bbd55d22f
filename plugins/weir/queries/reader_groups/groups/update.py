"""Groups whose settings, streams or release change. Made by `make queries` from sql/queries/reader_groups/groups/update.sql."""

from collections.abc import Sequence

from sqlalchemy import Connection, text

STORE = text(
    """UPDATE reader_group SET generation = generation + 1,
    subscriber = :subscriber, on_gap = :on_gap, release = :release, time_out = :time_out,
    max_outstanding = :max_outstanding, aligned = :aligned, max_ahead = :max_ahead, owner =
    :owner, subject = :subject,
    moved_at = CASE WHEN :subscriber AND NOT subscriber THEN clock_timestamp() ELSE moved_at END,
    checkpointed_at = CASE WHEN :release <> release OR :subscriber <> subscriber THEN '-infinity'
                      ELSE checkpointed_at END
WHERE group_id = :group_id"""
)


def store(
    connection: Connection,
    *,
    subscriber: bool,
    on_gap: str,
    release: str,
    time_out: int | None,
    max_outstanding: int,
    aligned: bool,
    max_ahead: int | None,
    owner: str | None,
    subject: str,
    group_id: int,
) -> None:
    """Store the settings of a group, as another generation. The next run releases what the group has read, also if it reads no more."""
    result = connection.execute(
        STORE,
        {
            "subscriber": subscriber,
            "on_gap": on_gap,
            "release": release,
            "time_out": time_out,
            "max_outstanding": max_outstanding,
            "aligned": aligned,
            "max_ahead": max_ahead,
            "owner": owner,
            "subject": subject,
            "group_id": group_id,
        },
    )
    result.close()


BEING_READ = text(
    """WITH gone AS (
    DELETE FROM reader_group_segment
    WHERE group_id = :group_id AND NOT stream_id = ANY(:wanted)
), removed AS (  -- if the group reads them again later, it begins elsewhere
    UPDATE checkpoint SET cuts = coalesce((
        SELECT jsonb_object_agg(key, value) FROM jsonb_each(cuts)
        WHERE key::bigint = ANY(:wanted)), '{}')
    WHERE group_id = :group_id AND state = 'waiting'
)
SELECT count(*) FROM held_segments(:group_id) WHERE NOT stream_id = ANY(:wanted)"""
)


def being_read(connection: Connection, *, group_id: int, wanted: Sequence[int]) -> int:
    """Take streams out of the positions and the waiting checkpoints of a group; return of how many segments of these an open batch reads."""
    result = connection.execute(BEING_READ, {"group_id": group_id, "wanted": list(wanted)})
    value: int = result.scalar_one()
    return value


REMOVE_STREAMS = text(
    """DELETE FROM reader_group_stream WHERE group_id = :group_id AND NOT stream_id = ANY(:ids)"""
)


def remove_streams(connection: Connection, *, group_id: int, ids: Sequence[int]) -> None:
    """Let a group read no other streams."""
    result = connection.execute(REMOVE_STREAMS, {"group_id": group_id, "ids": list(ids)})
    result.close()


TOUCH = text("""UPDATE reader_group SET moved_at = clock_timestamp() WHERE group_id = :group_id""")


def touch(connection: Connection, *, group_id: int) -> None:
    """Let the time-out of a group begin again: the events of a new stream may be old."""
    result = connection.execute(TOUCH, {"group_id": group_id})
    result.close()


PROTECT = text(
    """UPDATE reader_group_stream SET
    released_cut = CASE WHEN :subscriber THEN
        coalesce(released_cut, group_cut(group_id, stream_id)) END,
    subscriber_since = CASE WHEN :subscriber THEN
        coalesce(subscriber_since, clock_timestamp()) END,
    released_at = CASE WHEN :subscriber THEN
        CASE WHEN :anew THEN clock_timestamp()
        ELSE coalesce(released_at, clock_timestamp()) END END
WHERE group_id = :group_id"""
)


def protect(connection: Connection, *, subscriber: bool, anew: bool, group_id: int) -> None:
    """Let a group hold back what it has not read, if it is a subscriber."""
    result = connection.execute(
        PROTECT, {"subscriber": subscriber, "anew": anew, "group_id": group_id}
    )
    result.close()
