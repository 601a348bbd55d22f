"""Where copies of a stream's events are: what consumers made of them, and what they are published
as. Which of them an erasure finds by keys, and which it only names."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from sqlalchemy import Connection

from weir.annex.erasure.columns import Columns
from weir.errors import counted
from weir.kernel.matching import has_texts, is_number
from weir.kernel.schema import to_read
from weir.model.names import StreamName, stream_name
from weir.model.plain_column import plain_column
from weir.queries.annex.erasure import copies as sql

KEY, COLUMN, REJECTED, NOTHING = "routing key", "column", "rejected rows", "nothing"


@dataclass(frozen=True)
class Searched:
    """A stream that an erasure searches, and `by` what: its routing key, columns that have the
    keys, or the text of rejected rows. `columns`: those of it, or of these rows, that have the
    keys; none if its routing key is no column. `made`: the columns that have them in what was
    made of it, unless the reader group that made it declares its `subject`. `texts`: whether the
    keys are texts there, of which 7 and 7.0 are two; as numbers they are one. By nothing: it leaves
    the stream, and looks for what was made of it."""

    name: StreamName
    stream_id: int
    routing_key: str
    by: str
    columns: tuple[str, ...]
    made: tuple[str, ...]
    texts: bool

    @property
    def is_of_keys(self) -> bool:
        """Whether the keys are routing keys of it."""
        key = (plain_column(self.routing_key) or "").lower()
        return self.by == KEY or (
            self.by == COLUMN and key in (column.lower() for column in self.columns)
        )


def without_keys(one: "Remaining", keys: Sequence[str]) -> "Remaining":
    """Return what is left, without the example of a file whose name has a key."""
    if one.what == "input files" and any(key and key in one.why for key in keys):
        return replace(one, why=_EXAMPLE.sub(";", one.why))
    return one


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


_EXAMPLE = re.compile(r", such as .*;", re.DOTALL)


class _Copy(NamedTuple):
    """A stream, and the columns that have the keys in it, in lower case, by all names that they
    have had."""

    name: str
    stream_id: int
    routing_key: str
    named: set[str]


def searched(
    connection: Connection, stream_id: int, subject: str, *, by_keys: bool
) -> tuple[list[Searched], list[Remaining]]:
    """Return a stream and those that were made of it, each with what an erasure of keys searches it
    by, and the copies that it leaves. `subject`: the column that has the keys in what was made of
    it, where the group that made it declares none; empty: the one of the same name, or of a name
    that it had before. A condition finds events of its own stream only."""
    own = sql.own(connection, stream_id=stream_id)
    plain = plain_column(own.routing_key)
    columns_of = {stream_id: Columns.of(connection, stream_id)}
    keys = columns_of[stream_id].now(plain) if plain else []
    names = {plain.lower()} | columns_of[stream_id].names(keys) if plain else set[str]()
    copies = _copies(connection, _Copy(own.stream_name, stream_id, own.routing_key, names),
                     subject, columns_of)  # fmt: skip
    made = (subject,) if subject else tuple(sorted(names))
    found = [Searched(stream_name(own.stream_name), stream_id, own.routing_key, KEY,
                      tuple(field["name"] for field in keys), made,
                      _are_texts(columns_of[stream_id], names))]  # fmt: skip
    left, id_of = list[Remaining](), {one.name: one.stream_id for one in copies.values()}
    for one in sorted(copies.values(), key=lambda c: c.name):
        if one.stream_id == stream_id:
            continue
        known = (stream_name(one.name), one.stream_id, one.routing_key)
        if not by_keys:
            left.append(_left_stream(one.name, "a condition is about one stream only"))
            found.append(Searched(*known, NOTHING, (), (), texts=True))
            continue
        columns, by = sorted(one.named), REJECTED
        made = (subject,) if subject else tuple(columns)
        if not one.name.endswith(".rejected"):
            there = columns_of[one.stream_id]
            columns, why = _with_keys(there, columns)
            by = COLUMN if columns else NOTHING
            left += [_left_stream(one.name, reason) for reason in why]
            left += [several(f"stream {one.name}", columns)] if len(columns) > 1 else []
            fields = [field for field in there.of_files if field["name"] in columns]
            made = (subject,) if subject else tuple(sorted(there.names(fields)))
        of = id_of.get(one.name.removesuffix(".rejected"))  # which has the types of rejected rows
        texts = of is not None and _are_texts(columns_of[of], one.named)
        found.append(Searched(*known, by, tuple(columns), made, texts))
    return found, left + _others(connection, [*copies])


def _are_texts(there: Columns, named: Iterable[str]) -> bool:
    """Return whether no column that has or had some names is of numbers."""
    return not any(is_number(one.type) for name in named for one in to_read(there.ever(name)))


def _copies(
    connection: Connection, own: _Copy, subject: str, columns_of: dict[int, Columns]
) -> dict[int, _Copy]:
    """Return a stream and all that was made of it, and of that in turn."""
    found, waiting = {own.stream_id: own}, [own.stream_id]
    while waiting:
        one = found[waiting.pop()]
        for row in sql.made(connection, stream_id=one.stream_id):
            given = row.subject or ("" if row.stream_name.endswith(".rejected") else subject)
            named = {given.lower()} if given else one.named
            if row.stream_id not in columns_of:
                columns_of[row.stream_id] = Columns.of(connection, row.stream_id)
            there = columns_of[row.stream_id]
            named = named | there.names([field for name in named for field in there.ever(name)])
            known = found.get(row.stream_id)
            if known is None or not named <= known.named:
                found[row.stream_id] = _Copy(
                    row.stream_name, row.stream_id, row.routing_key,
                    named | (known.named if known else set()),
                )  # fmt: skip
                waiting.append(row.stream_id)
    return found


def _with_keys(there: Columns, named: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return which columns of a copy have keys, of those that should, and what is wrong with the
    others."""
    found: list[str] = []
    fields = {field["name"]: field for name in named for field in there.ever(name)}
    if not fields:
        names = " or ".join(named)
        return [], [
            f"it has no column {names}" if names else "no column is named that has the keys"
        ]
    wrong = list[str]()
    for name, field in fields.items():
        if has_texts(to_read([field]).field(0).type):
            found.append(name)
        else:
            wrong.append(f"its column {name} has no values that have the texts of keys")
    return found, wrong


def several(where: str, columns: Sequence[str]) -> Remaining:
    """Return what a person should know of a copy in which several columns may have the keys."""
    return Remaining(
        "columns", f"{', '.join(sorted(columns))} of {where}",
        "each may have the keys, by its name of now or of before, so rows with a key in any of "
        "them are erased", "unless its reader group declares the one that is meant as its subject",
    )  # fmt: skip


def _left_stream(name: str, why: str) -> Remaining:
    return Remaining(
        "stream", name, f"it was made of the stream, and {why}",
        "until it is truncated, or erased by a condition of its own",
    )  # fmt: skip


def _others(connection: Connection, streams: list[int]) -> list[Remaining]:
    left = [
        Remaining("pins of reader group", name, "they name routing keys",
                  "until they are taken back")
        for name in sql.pinned(connection, streams=streams)
    ]  # fmt: skip
    left += [
        Remaining(
            "Parquet outputs and tables", f"of reader group {name}",
            "it is deleted, and they are not listed any more", "until their owners delete the rows",
        )
        for name in sql.deleted_groups(connection, streams=streams)
    ]  # fmt: skip
    left += [
        Remaining(
            "what reader group", name, "gave to a program or a query, which wrote where Weir "
            "does not see it", "until its owner deletes it",
        )
        for name in sql.unseen(connection, streams=streams)
    ]  # fmt: skip
    left += [
        Remaining(
            "input files", f"of {row.stream_name}", f"{counted(row.files, 'file')} below the input "
            f"roots, such as {row.first}; Weir only reads them", "until their owners delete them",
        )
        for row in sql.inputs(connection, streams=streams)
    ]  # fmt: skip
    if deleted := sql.deleted_streams(connection):
        left.append(Remaining(
            "what was made", f"of {counted(deleted, 'deleted stream')}",
            "Weir does not know any more who read them, and what these wrote",
            "until that is erased by itself",
        ))  # fmt: skip
    return left + ([] if sql.sees_all(connection) else [HIDDEN]) + ALWAYS


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
        "reports", "of runs that scaled, tried a policy or failed",
        "they may have a key in another spelling, or one that is a number",
        "until their rows in weir.job_runs are pruned (job_history)",
    ),
    Remaining(
        "orchestration", "of this run, if Airflow ran it",
        "the DAG run and Airflow's audit log have what was given",
        "until the run is deleted and the log is cleaned (airflow db clean)",
    ),
    Remaining(
        "deleted rows", "in Postgres's own files", "it keeps them, and samples of tables, a while",
        "until it has vacuumed and analysed the tables and recycled its write-ahead log",
    ),
    Remaining(
        "what else has read it", "exports, logs and programs", "Weir does not know them",
        "until their owners delete it",
    ),
]  # fmt: skip
