"""Forget keys in what runs, batches and checks have recorded: in their sentences, and in the
arguments and reports of runs."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Connection, text

from weir.erasure.find import spellings

NOT_KEPT = "(not kept)"  # in place of what is to be forgotten
# The columns with sentences, and those with JSON, of each table that may have a value of a row.
RECORDED: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "job_run": (("progress", "error"), ("arguments", "report", "approved")),
    "request": ((), ("result",)),
    "reader_batch": (("error",), ()),
    "adjunct_store": (("error",), ()),
    "scale_decision": (("reason",), ()),
    "found_damage": (("what",), ()),
    "counter_example": (("what",), ()),
    "publication": (("problem",), ()),
}


def forget_in(connection: Connection, table: str, keys: Sequence[str]) -> int:
    """Replace some keys in what a table has recorded, as far as this login may change it. Returns
    in how many rows. A key that is a number is replaced where it stands alone or in quotes: another
    number of a sentence is not meant."""
    texts, objects = RECORDED[table]
    spelt = sorted({one for key in keys if key for one in spellings(key)})
    if not spelt:
        return 0
    names = [*texts, *objects]
    read = ", ".join(names)
    whole = ", ".join(f"{name}::text" for name in names)
    begun = "state <> 'submitted'" if table == "job_run" else "true"  # its job will read them
    may = text("SELECT has_table_privilege(:t, 'UPDATE')")
    if not connection.execute(may, {"t": f"weir_internal.{table}"}).scalar_one():
        return 0
    rows = connection.execute(
        text(
            f"""SELECT ctid::text AS place, {read} FROM {table}
            WHERE {begun} AND EXISTS (SELECT FROM unnest(CAST(:keys AS text[])) k
                WHERE strpos(concat_ws(' ', {whole}), k) > 0) FOR UPDATE"""  # noqa: S608 - constants
        ),
        {"keys": spelt},
    ).all()
    forget, changed = forgetting(keys), 0
    for row in rows:
        old = {name: getattr(row, name) for name in names}
        new = {name: forget(value) for name, value in old.items()}
        if new == old:
            continue
        changed += 1
        sets = [f"{name} = :{name}" for name in texts]
        sets += [f"{name} = CAST(:{name} AS jsonb)" for name in objects]
        given = {n: v if n in texts or v is None else json.dumps(v) for n, v in new.items()}
        connection.execute(
            text(f"UPDATE {table} SET {', '.join(sets)} WHERE ctid = CAST(:place AS tid)"),  # noqa: S608 - constants
            {**given, "place": row.place},
        )
    return changed


def forgetting(keys: Sequence[str]) -> Callable[[Any], Any]:
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

    def forget(value: Any) -> Any:
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
