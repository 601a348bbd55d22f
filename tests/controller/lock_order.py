"""What a transaction locks and writes, and what is wrong with the order of its statements."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import event

from tests.controller.statements import LOCK, WRITE, inlined
from tests.watching import watch_alone
from weir.database.connection import Database

ORDER = ("stream", "reader_group", "reader", "adjunct_store", "installation")
BY_ID = {"stream": "ORDER BY stream_id", "reader_group": "ORDER BY group_id"}

# By table, the table whose row must be locked before it is written to.
OWNER = {
    **dict.fromkeys(
        """stream stream_schema epoch segment segment_tail transaction transaction_input
        stream_writer data_file hole erasure erased_keys time_index packed_commits stream_cut
        retention_decision scale_decision hot_key compaction truncation truncated_range
        publication published_file stream_history""".split(),
        "stream",
    ),
    **dict.fromkeys(
        """reader_group reader_group_stream reader reader_batch reader_group_segment
        reader_group_pin adjunct_pin checkpoint parquet_output batch_input placement
        delivered_range group_history""".split(),
        "reader_group",
    ),
    **dict.fromkeys(
        """adjunct_store adjunct_definition adjunct_version adjunct_file
        adjunct_version_file""".split(),
        "adjunct_store",
    ),
    # No row of another table guards these, such as the queues of what is to be looked at.
    **dict.fromkeys(
        """garbage request job_run installation alembic_version capture_queue
        retention_queue scale_evaluation scale_measurement verification found_damage watch
        watched_partition audit counter_example audited_stream announcement erasure_request
        signing_key owner_history""".split(),
        "",
    ),
}

# What a foreign key takes itself, of the rows for which nobody is waited: they are not deleted.
KEPT = re.compile(r"FOR KEY SHARE OF \w+ SKIP LOCKED")

# What may write without its owner's lock, and why that does no harm.
EXCEPTIONS = {
    "controller.rejected.make_rejected_stream": "as create_stream",
    "controller.streams.create_stream": "nobody else sees the rows yet; the unique name decides",
    "reader_groups.groups.lifecycle.create_reader_group": "the same, and its streams are locked",
    "adjunct.stores.define_store": "the same, and its stream is locked",
    "adjunct.publication.renew_build": "one row, as long as this attempt holds it",
    "adjunct.expiry.prune_versions": "they are over, and nobody changes or reads them",
    "retention.capture.capture": "adds what it read in the same statement, and that stays true",
    "reader_groups.history.record_groups": "as capture; a row of now says what is so now",
    "reader_groups.history.keep_history": "they are too old, and nobody changes them",
    "scaling.run.scale_by_load": "decisions to do nothing, which say on what they rest",
    "reader_groups.checkpoints.periodic.prune_checkpoints": (
        "a newer one follows them; a reset to them fails"
    ),
    "compaction.records.renew": "one row, as long as this compaction is open",
    "compaction.records.prune_compactions": "they are over, and nobody changes or waits for them",
    "reader_groups.batches.history.prune_batches": (
        "they are over, and nobody changes or waits for them"
    ),
    "controller.transactions.ping": (
        "one row, as long as this attempt holds it; it asks for no other lock"
    ),
    "controller.transactions.ping_all": (
        "the same for each, in the order in which they are committed"
    ),
    "reader_groups.groups.readers.renew": (
        "one row, as long as this reader holds it, before those of its appends"
    ),
}


def faults(statements: Sequence[str], *, excused: bool = False) -> list[str]:
    """Return what is wrong with the statements of one transaction."""
    found: list[str] = []
    locked: list[str] = []
    written = False
    for sent in statements:
        statement = inlined(sent)
        here: set[str] = set()
        for lock in LOCK.finditer(statement):
            if KEPT.match(statement, lock.start()):
                continue
            before = re.findall(r"FROM (\w+)", statement[: lock.start()])
            table = [one for one in before if one in ORDER][-1]
            # This is the same lock in another way, or close_streams of streams that are locked.
            if table in here or (table in locked and "close_streams(" in sent):
                continue
            here.add(table)
            if lock[0] != "FOR NO KEY UPDATE":
                found.append(f"locks {table} {lock[0]}")
            if written:
                found.append(f"locks {table} after it has written")
            if any(ORDER.index(table) <= ORDER.index(one) for one in locked):
                found.append(f"locks {table} after {locked[-1]}")
            if re.search(r"= ANY|\bIN \(", statement) and BY_ID[table] not in statement:
                found.append(f"locks many rows of {table} in no order")
            locked.append(table)
        for table in WRITE.findall(statement):
            written = True
            if OWNER[table] not in ("", *locked) and not excused:
                found.append(f"writes {table} without a lock on its {OWNER[table]}")
    return found


class Watch:
    """Calls operations, and keeps the statements of each of their transactions."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.seen: dict[str, list[list[str]]] = {}
        self._into: list[list[str]] = []
        engine = database.engine
        event.listen(engine, "begin", lambda _: self._into.append([]))
        event.listen(engine, "before_cursor_execute", lambda *sent: self._into[-1].append(sent[2]))
        watch_alone(database, before=lambda statement: self._into.append([statement]))

    def __call__(self, operation: Callable[..., Any], *given: Any, **named: Any) -> Any:
        self._into = self.seen.setdefault(called(operation), [])
        try:
            if "database" in inspect.signature(operation).parameters:
                return operation(self.database, *given, **named)
            return self.database.transaction(lambda c: operation(c, *given, **named))
        finally:
            self._into = []

    def faults(self) -> list[str]:
        return [
            f"{operation} {fault}"
            for operation, transactions in self.seen.items()
            for statements in transactions
            for fault in faults(statements, excused=operation in EXCEPTIONS)
        ]


def called(operation: Callable[..., Any]) -> str:
    """What the lists here call an operation."""
    return f"{operation.__module__.removeprefix('weir.')}.{operation.__name__}"
