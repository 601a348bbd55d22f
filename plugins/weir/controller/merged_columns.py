"""The columns of a read of several streams as one."""

from collections.abc import Sequence

from weir.controller.read_plan import Slices
from weir.errors import InvalidInput
from weir.model.schema import STREAM, Field, same_type, show, stored_name


def merged_columns(streams: Sequence[Slices], columns: Sequence[str] | None) -> list[Field]:
    """Return the columns of a read of several streams: those that all of them have with the same
    type, or `columns`, which are null in the streams that lack them. A stream that never had an
    event and declares no columns is left out of that.

    Raises InvalidInput for a column that no stream has, or that has several types.
    """
    known = [one for one in streams if one.fields]
    of_stream = {one.name: {f["name"].lower(): f for f in one.fields} for one in known}
    first = [f for one in known[:1] for f in one.fields]
    found = list[Field]()
    for name in [f["name"] for f in first] if columns is None else columns:
        having = {s: one[name.lower()] for s, one in of_stream.items() if name.lower() in one}
        types = {show(field["type"]): s for s, field in having.items()}
        fields = list(having.values())
        same = all(same_type(field["type"], fields[0]["type"]) for field in fields)
        if columns is None:
            if same and len(having) == len(known) and name.lower() != STREAM:
                found.append({**fields[0], "nullable": True})
        elif not having:
            raise InvalidInput(
                "column_unknown",
                f"none of the streams {', '.join(one.name for one in streams)} has a column "
                f"{name!r}; choose among their columns.",
            )
        elif not same:
            shown = " and ".join(f"{kind} in {stream}" for kind, stream in types.items())
            raise InvalidInput(
                "column_type_differs",
                f"column {name!r} is {shown}; leave it out, or read the streams one by one.",
            )
        elif name.lower() == STREAM:
            raise InvalidInput(
                "columns_invalid",
                f"column {name!r} has the name of the column that says which stream an event is "
                "from; leave it out, or read the streams one by one.",
            )
        else:
            found.append({**fields[0], "nullable": True})
    return found


def own_columns(merged: Sequence[Field], read: Slices) -> list[Field]:
    """Return the columns of a merged read as one of the streams has them in its files. One that the
    stream does not have is in no file (its stored name is empty), and null."""
    own = {field["name"].lower(): field for field in read.fields}
    found = []
    for field in merged:
        mine = own.get(field["name"].lower())
        one: Field = {**field, "stored": "" if mine is None else stored_name(mine)}
        one.pop("default", None)
        if mine and "default" in mine:
            one["default"] = mine["default"]
        found.append(one)
    return found
