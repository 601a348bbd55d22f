"""What a change of a stream's columns means for its adjunct stores (semantics 5.5).

A store keeps the columns of events under their names in files. So it goes on where its definition
does not name the column, or by a column or a transform, which follows to the new name. Else it is
outdated, until somebody defines it with the names of now.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from sqlalchemy import Connection

from weir.adjunct.stores import AdjunctStore, read_stores
from weir.controller.locks import LockedStream
from weir.errors import Conflict
from weir.front_ends import do
from weir.model.column_changes import ColumnChanges, followed_definition, transforms_in
from weir.queries.consumers import column_stores as sql

_PARTS = {"key": "key", "value": "value", "delete_when": "delete condition"}


def of_stores(
    connection: Connection,
    stream: LockedStream,
    changes: ColumnChanges,
    function_path: Sequence[str],
) -> list[str]:
    """Return which adjunct stores of a locked stream name the columns that are to change; make
    their definitions follow, or say that they are outdated.

    Raises Conflict for a change after which a store would mix what it has with what comes: of a
    column that its key is made of, to a wider type of one that its value names, and of a default
    that the events it has would lack.
    """
    names = sql.stores_of(connection, stream_id=stream.stream_id)
    found = []
    for _, store in sorted(read_stores(connection, names).items()):
        defaults = [one["name"] for one in changes.add if "default" in one]
        if defaults:
            raise _kept(store, defaults[0], "added with a default")
        said = _of_store(store, changes, function_path)
        definition = followed_definition(store.definition, changes.rename)
        if said or definition != store.definition:
            sql.follow(
                connection,
                store_id=store.store_id,
                definition=store.definition_number,
                was=store.definition.key,
                key=definition.key,
                value=definition.value,
                delete_when=definition.delete_when,
                outdated=said[0] if said else None,
            )
        found += [f"adjunct store {store.name} is outdated, because {one}" for one in said]
        if not store.definition.value and changes.touched:
            found.append(
                f"adjunct store {store.name} keeps all columns, and has {_shown(changes)} from "
                "its next version on"
            )
    return found


def _of_store(
    store: AdjunctStore, changes: ColumnChanges, function_path: Sequence[str]
) -> list[str]:
    """Return which columns that a definition names are called otherwise afterwards, or gone."""
    wider = {one["name"] for one in changes.widen}
    said = []
    for part, called in _PARTS.items():
        named, follows = _named(store, part, list(changes.touched), function_path)
        for name, what in changes.touched.items():
            renamed_only = name in changes.rename and name not in wider
            if name not in named or (follows and renamed_only):
                continue
            if part == "key" or name in wider:
                raise _kept(store, name, what)
            said.append(
                f"column {name!r} of stream {store.stream}, which its {called} names, was {what}"
            )
    return said


def _named(
    store: AdjunctStore, part: str, columns: Sequence[str], function_path: Sequence[str]
) -> tuple[set[str], bool]:
    """Return which of some columns a part of a definition names, or may name, and whether it
    follows to new names."""
    written = getattr(store.definition, part)
    if written in store.definition.functions:
        return {*of_function("", written, columns, function_path)}, False
    used = {one.lower() for some in transforms_in(part, written) for one in some.columns}
    return {name for name in columns if name.lower() in used}, True


def _kept(store: AdjunctStore, column: str, what: str) -> Conflict:
    return Conflict(
        "columns_in_use",
        f"adjunct store {store.name} keeps events of stream {store.stream} by their keys and types "
        f"of now, so column {column!r} can't be {what}; delete the store and define it again "
        f"afterwards ({do('delete_adjunct_store', adjunct_store=store.name)}).",
    )


def _shown(changes: ColumnChanges) -> str:
    return ", ".join(f"{name!r} {what}" for name, what in changes.touched.items())


def of_function(
    who: str, function: str, columns: Sequence[str], function_path: Sequence[str]
) -> dict[str, str]:
    """Return by column where the text of a function's module has it, or that it can't be looked at,
    so that it may have all. It is only read."""
    parts = function.partition(":")[0].split(".")
    files = [
        file
        for folder in function_path
        for file in (Path(folder, *parts).with_suffix(".py"), Path(folder, *parts, "__init__.py"))
        if file.is_file()
    ]
    if not files:
        said = f"the function {function} of {who} can't be looked at here"
        return dict.fromkeys(columns, said)
    lines = files[0].read_text(errors="replace").splitlines()
    found = {}
    for name in columns:
        word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)
        number = next((i for i, line in enumerate(lines, start=1) if word.search(line)), 0)
        if number:
            found[name] = (
                f"the function {function} of {who} has {name!r} in line {number} of its module"
            )
    return found
