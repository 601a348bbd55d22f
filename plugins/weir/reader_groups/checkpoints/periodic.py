"""Checkpoint all groups periodically, many groups in one transaction.

It waits for no lock: what another session has locked is checkpointed by itself afterwards. If the
transaction fails, so is each of its groups.
"""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection

from weir.database.connection import Database
from weir.database.once import commit_once
from weir.queries.reader_groups.checkpoints import periodic as sql
from weir.reader_groups.checkpoints.lifecycle import checkpoint, settle_group_in
from weir.reader_groups.checkpoints.records import (
    Checkpointed,
    record_positions,
    release_checkpoints,
    said_of,
)
from weir.reader_groups.locks import lock_free_groups

# Groups per transaction. Their streams are locked for its duration, about 50 ms, and appends wait
# for that long.
AT_ONCE = 100


def settle_all(database: Database) -> tuple[list[Checkpointed], list[str]]:
    """Settle the waiting checkpoints of all groups.

    Returns those that are complete now, as `settle_group_in` does, and the sentences of the
    failures.
    """
    groups = database.transaction(sql.waiting)
    done: list[Checkpointed] = []
    failed: list[str] = []
    for group in groups:
        one = partial(commit_once, database, partial(settle_group_in, group=group))
        settled, failure = database.one_of_many(f"group {group}", one)
        done += settled or []
        failed += [failure] if failure else []
    return done, failed


def checkpoint_all(database: Database) -> tuple[list[Checkpointed], list[str]]:
    """Checkpoint every group that has moved, `AT_ONCE` groups in a transaction.

    Those that another session has locked, and all of a transaction that failed, are checkpointed
    one by one, so that a group that fails does not stop the others. Returns what was made,
    each as `checkpoint` returns it, and the sentences of the failures.
    """
    made, failed = settle_all(database)
    groups = database.transaction(sql.moved)
    for i in range(0, len(groups), AT_ONCE):
        some = groups[i : i + AT_ONCE]
        together = partial(commit_once, database, partial(_checkpoint_free, groups=some))
        result, _ = database.one_of_many("groups", together)
        done, seen = result or ([], set())  # after a failure one by one, to see which group failed
        made += done
        for group in some:
            if group.group_id in seen:
                continue
            one = partial(checkpoint, database, group.name)
            alone, failure = database.one_of_many(f"group {group.name}", one)
            made += [alone] if alone is not None else []
            failed += [failure] if failure else []
    return made, failed


def _checkpoint_free(
    connection: Connection, groups: Sequence[sql.Moved]
) -> tuple[list[Checkpointed], set[int]]:
    """Checkpoint those of the groups that nobody else has locked.

    Returns what was made, and the ids of the groups that are done with.
    """
    free = lock_free_groups(connection, [group.group_id for group in groups])
    if not free:
        return [], set()
    recorded = record_positions(connection, free)
    made = [one for one in recorded if one.checkpoint is not None]
    release_checkpoints(
        connection, [(one.group_id, one.checkpoint) for one in made if one.released]
    )
    return list(map(said_of, made)), {one.group_id for one in recorded if not one.refused}


def prune_checkpoints(database: Database, older_than: float) -> int:
    """Delete checkpoints older than so many seconds: automatic ones, but never a group's newest,
    and those that were given up. Returns how many."""
    return commit_once(database, partial(sql.prune, age=older_than))
