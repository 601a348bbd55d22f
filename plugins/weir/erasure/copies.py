"""Where copies of a stream's events are: what consumers made of them, and what they are published
as. Which of them an erasure finds by keys, and which it only names."""

from dataclasses import dataclass, replace

from sqlalchemy import Connection, text

from weir.arrow.schema import to_read
from weir.controller.streams import schema_by_id
from weir.erasure.find import has_texts
from weir.model.names import StreamName, stream_name
from weir.model.plain_column import plain_column

KEY, COLUMN, REJECTED = "routing key", "column", "rejected rows"


@dataclass(frozen=True)
class Searched:
    """A stream that an erasure searches, and `by` what: its routing key, a `column` that has the
    keys, or the text of rejected rows."""

    name: StreamName
    stream_id: int
    routing_key: str
    by: str
    column: str | None

    def with_keys_in(self, subject: str) -> "Searched":
        """Return it as what was made of it is searched: by the column `subject` if given."""
        return replace(self, column=subject) if subject else self


@dataclass(frozen=True)
class Remaining:
    """Where copies may be that an erasure leaves: what it is, its name, why, and until when."""

    what: str
    name: str
    why: str
    until: str

    def line(self) -> str:
        """Return it as a sentence."""
        return f"{self.what} {self.name}: {self.why}; {self.until}"


# A stream, the streams that its groups have written to, and theirs. By the writers: batches are
# pruned, and groups are deleted or read other streams; where they were put, and the transactions of
# what can be read, are kept.
_STREAMS = text(
    """WITH RECURSIVE below AS (
        SELECT s.stream_id, s.stream_name, s.routing_key FROM stream s WHERE s.stream_id = :s
        UNION
        SELECT n.stream_id, n.stream_name, n.routing_key FROM below o
        CROSS JOIN LATERAL (
            SELECT s.stream_id, s.stream_name, s.routing_key FROM stream s
            WHERE s.state <> 'deleted' AND (s.stream_name = o.stream_name || '.rejected' OR EXISTS (
                SELECT FROM placement p JOIN transaction t ON t.stream_name = s.stream_name
                    AND t.writer_id = 'group ' || p.group_name
                    AND starts_with(t.batch_id, p.group_id || '.')
                WHERE p.stream_id = o.stream_id AND p.number = 1 AND t.state = 'committed'))) n
    )
    SELECT stream_id, stream_name, routing_key FROM below"""
)
_PINS = text(
    """SELECT DISTINCT g.name FROM reader_group_pin p JOIN reader_group g USING (group_id)
    JOIN reader_group_stream gs USING (group_id) WHERE gs.stream_id = ANY(:streams) ORDER BY 1"""
)
# Those of adjunct stores write to these only.
_DELETED = text(
    """SELECT DISTINCT p.group_name FROM placement p
    WHERE p.stream_id = ANY(:streams) AND p.number = 1 AND p.group_name NOT LIKE '%/%'
        AND NOT EXISTS (SELECT FROM reader_group g WHERE g.group_id = p.group_id)
        AND EXISTS (SELECT FROM delivered_range d
            WHERE d.group_id = p.group_id AND d.stream_id = p.stream_id) ORDER BY 1"""
)


def searched(
    connection: Connection, stream_id: int, subject: str, *, by_keys: bool
) -> tuple[list[Searched], list[Remaining]]:
    """Return the streams that an erasure of keys of a stream searches, that stream first, and the
    copies that it leaves. `subject`: the column that has the keys in the streams that were made of
    it; empty: of the name of its routing key. A condition finds events of its own stream only."""
    rows = connection.execute(_STREAMS, {"s": stream_id}).all()
    own = next(row for row in rows if row.stream_id == stream_id)
    column = subject or plain_column(own.routing_key)
    found, left = list[Searched](), list[Remaining]()
    rows = [own, *sorted((r for r in rows if r is not own), key=lambda r: str(r.stream_name))]
    for row in rows:
        name = stream_name(row.stream_name)
        schema = to_read(schema_by_id(connection, row.stream_id))
        there = {n.lower(): n for n in schema.names}
        plain = there.get((plain_column(row.routing_key) or "").lower())
        given = (name, row.stream_id, row.routing_key)
        of_name = there.get((column or "").lower())
        if row is own:
            found.append(Searched(*given, KEY, plain))
        elif not by_keys:
            left.append(_left_stream(row.stream_name, "a condition is about one stream only"))
        elif row.stream_name.endswith(".rejected"):
            found.append(Searched(*given, REJECTED, column or ""))
        elif of_name is not None and has_texts(schema.field(of_name).type):
            found.append(Searched(*given, COLUMN, of_name))
        elif of_name is not None:
            why = f"its column {of_name} has neither texts, whole numbers nor dates"
            left.append(_left_stream(row.stream_name, why))
        else:
            why = f"it has no column {column}" if column else "no column is named that has the keys"
            left.append(_left_stream(row.stream_name, why))
    return found, left + _others(connection, [row.stream_id for row in rows])


def _left_stream(name: str, why: str) -> Remaining:
    return Remaining(
        "stream", name, f"it was made of the stream, and {why}",
        "until it is truncated, or erased by a condition of its own",
    )  # fmt: skip


def _others(connection: Connection, streams: list[int]) -> list[Remaining]:
    given = {"streams": streams}
    left = [
        Remaining(
            "pins of reader group", row.name, "they name routing keys", "until they are taken back"
        )
        for row in connection.execute(_PINS, given)
    ]
    left += [
        Remaining(
            "Parquet outputs and tables", f"of reader group {row.group_name}",
            "it is deleted, and they are not listed any more", "until their owners delete the rows",
        )
        for row in connection.execute(_DELETED, given)
    ]  # fmt: skip
    if connection.execute(text("SELECT NOT sees_all(current_user)")).scalar_one():
        left.append(HIDDEN)
    return left + ALWAYS


# What a team does not see.
HIDDEN = Remaining(
    "streams, groups and stores",
    "of other teams",
    "this login sees those of its own teams only",
    "until a member of weir_jobs erases there, too",
)
# What Weir can't see.
ALWAYS = [
    Remaining(
        "backups", "of the database and the warehouse", "Weir does not know them",
        "until they are deleted; after a restore, erase again",
    ),
    Remaining(
        "object versions", "of the warehouse's bucket", "one with versions keeps deleted files",
        "until its rule for versions deletes them",
    ),
    Remaining(
        "appends", "that were open when it ran", "what they commit are new events",
        "until these are erased, too",
    ),
    Remaining(
        "reports", "of runs that scaled, tried a policy or failed on a row", "they may have a key",
        "until their rows in weir.job_runs are pruned (job_history)",
    ),
    Remaining(
        "orchestration", "the form of this run in Airflow", "its configuration has what was given",
        "until the DAG run is deleted",
    ),
    Remaining(
        "what else has read it", "exports, logs and programs", "Weir does not know them",
        "until their owners delete it",
    ),
]  # fmt: skip
