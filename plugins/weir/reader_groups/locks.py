"""Lock rows of reader groups and readers, and of streams before them (semantics 4.3).

After locking, read again what you read before (semantics 4.3).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.controller.locks import LockedStream, locked
from weir.database import columns
from weir.errors import Conflict, NotFound
from weir.front_ends import do
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import StreamName
from weir.queries.controller.locks import StreamColumns
from weir.queries.reader_groups import locks as sql
from weir.reader_groups.group_streams import group_streams


@dataclass(frozen=True)
class LockedGroup:
    """The row of a reader group, locked until the end of the transaction."""

    group_id: int
    name: str
    generation: int
    configuration: GroupConfiguration
    next_token: int
    next_batch: int

    @property
    def releases_at_checkpoints(self) -> bool:
        """Whether its checkpoints release what lies before them."""
        return self.configuration.subscriber and self.configuration.release == "automatic"

    def must_be_of(self, generation: int | None) -> None:
        """Check that the caller means this generation; None means any. Raises Conflict."""
        if generation is not None and generation != self.generation:
            raise Conflict(
                "group_changed",
                f"reader group {self.name} has generation {self.generation}, not {generation}, "
                "because it was changed in the meantime; read it again and repeat the change.",
            )


def lock_group(connection: Connection, name: str) -> LockedGroup:
    """Lock a reader group and return it. Afterwards, lock only readers and batches. Raises
    NotFound.
    """
    return _checked(connection, name, sql.lock_group(connection, name=name))


def lock_streams_and_group(
    connection: Connection, group: str, *, names: Sequence[StreamName] = (), ids: Iterable[int] = ()
) -> tuple[list[LockedStream], LockedGroup]:
    """Lock streams, as `lock_streams` does, and a reader group; return both.

    While another session has the group locked, no stream stays locked. Raises NotFound.
    """
    ids = list(ids)
    if not names and not ids:
        return [], lock_group(connection, group)
    streams = _locked(connection, names, ids, group)
    return streams, _checked(connection, group, sql.read_group(connection, name=group))


def lock_group_and_streams(
    connection: Connection, name: str, more: Sequence[StreamName] = ()
) -> tuple[list[LockedStream], LockedGroup]:
    """Lock a group and before it the streams that it reads, and others. Raises NotFound, and
    Conflict if the streams of the group changed at the same time."""
    before = group_streams(connection, name)
    locked, group = lock_streams_and_group(
        connection, name, names=more, ids=[s.stream_id for s in before if s.exists]
    )
    if group_streams(connection, name) != before:
        raise Conflict(
            "group_changed", f"reader group {name} was changed at the same time; try again."
        )
    return locked, group


def lock_free_groups(connection: Connection, group_ids: Sequence[int]) -> list[LockedGroup]:
    """Lock those of the groups, and before them their streams, that no other session has locked;
    wait for nobody. Return the locked groups by id.

    Leaves out a group if one of its streams is locked, or if its streams changed meanwhile.
    """
    before = _streams_of(connection, group_ids)
    wanted = sorted({stream_id for alive, _ in before.values() for stream_id in alive})
    had = set(sql.lock_free_streams(connection, ids=wanted))
    free = [group_id for group_id, (alive, _) in before.items() if alive <= had]
    groups = list(map(_group_of, sql.lock_free_groups(connection, ids=free)))
    after = _streams_of(connection, free)
    return [group for group in groups if after.get(group.group_id) == before[group.group_id]]


def _streams_of(
    connection: Connection, group_ids: Sequence[int]
) -> dict[int, tuple[set[int], set[int]]]:
    """Return by group the streams that it reads: those that are still there, and all."""
    rows = sql.streams_of(connection, ids=list(group_ids))
    return {row.group_id: (set(row.alive), set(row.streams)) for row in rows}


def lock_stream_and_groups(
    connection: Connection, name: StreamName | None = None, stream_id: int | None = None
) -> LockedStream:
    """Lock a stream, given by its name or id, and all reader groups that read it; return the
    stream.

    So nobody opens a batch of it in the meantime. While another session has one of the groups
    locked, the stream does not stay locked. Raises NotFound.
    """
    ids = [] if stream_id is None else [stream_id]
    return _locked(connection, [name] if name else [], ids, None)[0]


def _locked(
    connection: Connection, names: Sequence[StreamName], ids: Iterable[int], group: str | None
) -> list[LockedStream]:
    ids = sorted(set(ids))
    rows = sql.lock_streams_and_groups(
        connection, ids=ids, scopes=[name.scope for name in names],
        names=[name.name for name in names], group=group,
    )  # fmt: skip
    return locked([StreamColumns._make(row) for row in rows], names, ids)


def _checked(connection: Connection, name: str, row: sql.GroupRow | None) -> LockedGroup:
    if row is None:
        raise no_such_group(name)
    if row.owner and not sql.may_act_for(connection, owner=row.owner):
        raise Conflict(
            "not_permitted",
            f"reader group {name} belongs to {row.owner}, of which your login to the database is "
            "no member; ask one of its members to do it.",
        )
    return _group_of(row)


def no_such_group(name: str) -> NotFound:
    """Return the error for a reader group that does not exist."""
    return NotFound(
        "group_not_found",
        f"there is no reader group {name}; check the name, or "
        f"{do('create_reader_group', reader_group=name, streams=['STREAM'])}.",
    )


def _group_of(row: sql.GroupRow) -> LockedGroup:
    given = row._asdict()
    configuration = columns.taken(GroupConfiguration, given)
    return LockedGroup(configuration=configuration, **given)
