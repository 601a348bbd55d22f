"""Forget keys in what runs, batches and checks have recorded: in their sentences, and in the
arguments and reports of runs."""

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, text

from weir.annex.erasure.find import spellings
from weir.queries.annex.erasure import sentences as sql

NOT_KEPT = "(not kept)"  # in place of what is to be forgotten


class Recorded(NamedTuple):
    """A table that may have a value of a row: how it is written, its columns with sentences, those
    with JSON, and which rows are not to change."""

    writes: str
    texts: tuple[str, ...]
    objects: tuple[str, ...] = ()
    unless: str = "false"

    @property
    def table(self) -> str:
        return self.writes.split()[-1]


RECORDED = (
    Recorded(  # what was submitted is yet to be read by its job
        "UPDATE job_run", ("progress", "error"), ("arguments", "report", "approved"),
        unless="state = 'submitted'",
    ),
    Recorded("UPDATE request", (), ("result",)),
    Recorded("UPDATE reader_batch", ("error",)),
    Recorded("UPDATE adjunct_store", ("error",)),
    Recorded("UPDATE scale_decision", ("reason",)),
    Recorded("UPDATE found_damage", ("what",)),
    Recorded("UPDATE publication", ("problem",)),
)  # fmt: skip


def forget_in(connection: Connection, one: Recorded, keys: Sequence[str]) -> int:
    """Replace some keys in what a table has recorded, as far as this login may change it. Returns
    in how many rows. A key that is a number is replaced where it is a text of its own, or in
    quotes: another number of a sentence is not meant."""
    spelt = sorted({one for key in keys if key for one in spellings(key)})
    if not spelt or not sql.may_update(connection, table=one.table):
        return 0
    names = [*one.texts, *one.objects]
    whole = ", ".join(f"{name}::text" for name in names)
    rows = connection.execute(
        text(
            f"""SELECT ctid::text AS place, {", ".join(names)} FROM {one.table}
            WHERE NOT ({one.unless}) AND EXISTS (SELECT FROM unnest(CAST(:keys AS text[])) k
                WHERE strpos(concat_ws(' ', {whole}), k) > 0) FOR UPDATE"""  # noqa: S608 - constants
        ),
        {"keys": spelt},
    ).all()
    forget, changed = forgetting(keys), 0
    sets = [f"{name} = :{name}" for name in one.texts]
    sets += [f"{name} = CAST(:{name} AS jsonb)" for name in one.objects]
    for row in rows:
        old = {name: getattr(row, name) for name in names}
        new = {name: forget(value) for name, value in old.items()}
        if new == old:
            continue
        changed += 1
        given = {n: v if n in one.texts or v is None else json.dumps(v) for n, v in new.items()}
        connection.execute(
            text(f"{one.writes} SET {', '.join(sets)} WHERE ctid = CAST(:place AS tid)"),
            {**given, "place": row.place},
        )
    return changed


def forgetting(keys: Sequence[str]) -> Callable[[object], object]:
    """Return what puts NOT_KEPT in the place of keys in a value of JSON: of a text that is one, of
    one as a word of a sentence, and of one in quotes."""
    whole = {key for key in keys if key}
    if not whole:
        return lambda value: value
    words = {one for key in whole for one in spellings(key) if not key.isdecimal()}
    quoted = {one for key in whole for one in spellings(key)}
    parts = [rf"(?<=['\"]){_either(quoted)}(?=['\"])"]
    parts += [rf"(?<!\w){_either(words)}(?!\w)"] if words else []
    found = re.compile("|".join(parts))

    def forget(value: object) -> object:
        if isinstance(value, str):
            if value in whole:
                return NOT_KEPT
            return found.sub(NOT_KEPT, value) if re.search(r"\s", value) else value
        if isinstance(value, list):
            return [forget(one) for one in value]
        if isinstance(value, dict):
            return {name: forget(one) for name, one in value.items()}
        return value

    return forget


def _either(some: set[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(some, key=len, reverse=True)))})"
