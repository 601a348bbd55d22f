"""What is to change in the columns of a stream so that they are what a file declares.

A column is known by its name in files, which it keeps (semantics 5.5). So a file that is applied
again changes nothing, also after two columns have swapped their names.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from weir.errors import InvalidInput
from weir.kernel.schema import same_default, with_default
from weir.model.column_changes import ColumnChanges, default_is_fixed, holds
from weir.model.declared_columns import declared_columns
from weir.model.schema import Field, same_type, show, stored_name
from weir.operations.expressions import columns_of


@dataclass(frozen=True)
class DeclaredColumns:
    """The columns of a stream as they are to be. `written`: as SQL. `defaults`: texts by name.
    `renames`: names by the names in files. `drop`: names in files."""

    written: str = ""
    defaults: Mapping[str, str] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    drop: Sequence[str] = ()

    def created(self, stream: str, routing_key: str) -> ColumnChanges:
        """Return the columns of a new stream. Raises InvalidInput for them and its routing key."""
        declared = columns_of(self.written, routing_key)
        return ColumnChanges(self._named(stream, declared) if declared else [], reserve=self.drop)

    def changes(self, stream: str, there: list[Field], dropped: Sequence[str]) -> ColumnChanges:
        """Return what differs in the columns of a stream. `dropped`: names in files of columns that
        the stream no longer has.

        Raises InvalidInput for what can't be made so: a column that was dropped, a type that is not
        wider, another default, a name by which the stream has another column.
        """
        rename = self._renamed(stream, there, dropped)
        gone = [one["name"] for one in there if stored_name(one) in self.drop]
        names = {str(one["name"]): rename.get(one["name"], str(one["name"])) for one in there}
        after: dict[str, Field] = {
            names[one["name"]]: one for one in there if one["name"] not in gone
        }
        declared = declared_columns(self.written) if self.written else []
        told = {one["name"] for one in declared}
        for one in there:
            name = one["name"]
            if name in gone and name in told and name not in rename.values():
                raise InvalidInput(
                    "argument_invalid",
                    f"column {name!r} of stream {stream} is to be dropped, and is declared; take "
                    "it out of one of both (to have a new column of that name, drop this one "
                    "first).",
                )
            if name in self.drop and name not in gone and name not in told:
                raise _stored_otherwise(stream, one, "drop_columns", stored_name(one))
        add, widen = list[Field](), list[Field]()
        by_stored = {stored_name(one): one for one in there}
        for one in self._named(stream, declared):
            name, old = one["name"], after.get(one["name"])
            if old is None:
                meant = by_stored.get(name)
                if meant and name not in (*self.renames, *self.drop):  # the file is older than it
                    advice = f"{name} -> {meant['name']} (or {name} -> {name} to rename it back)"
                    raise _stored_otherwise(stream, meant, "rename_columns", advice)
                add.append(one)
                continue
            if not same_type(old["type"], one["type"]):
                _check_wider(stream, old, one)
                widen.append({**one, "name": old["name"]})
            _check_default(stream, old, one)
        reserve = {*self.drop} - {*dropped} - {stored_name(one) for one in there}
        return ColumnChanges(add, rename, gone, widen, sorted(reserve))

    def _renamed(self, stream: str, there: list[Field], dropped: Sequence[str]) -> dict[str, str]:
        """Return the new names of columns that are there, by those that they have."""
        by_stored = {stored_name(one): one["name"] for one in there}
        names = {one["name"]: one for one in there}
        found: dict[str, str] = {}
        for stored, name in self.renames.items():
            if stored in by_stored:
                if by_stored[stored] != name:
                    found[by_stored[stored]] = name
            elif stored in dropped:
                raise InvalidInput(
                    "column_unknown",
                    f"the column {stored!r} of the files of stream {stream}, which is to be called "
                    f"{name!r}, was dropped; take it out of rename_columns.",
                )
            elif meant := names.get(stored, names.get(name)):
                advice = f"{stored_name(meant)} -> {name}"
                raise _stored_otherwise(stream, meant, "rename_columns", advice)
        return found

    def _named(self, stream: str, declared: list[Field]) -> list[Field]:
        """Return columns with their names in files, and with their defaults."""
        stored = {name: old for old, name in self.renames.items()}
        told = {one["name"] for one in declared}
        for name in (*self.defaults, *self.renames.values()):
            if name not in told:
                what = "a default" if name in self.defaults else "its name in files"
                raise InvalidInput(
                    "column_unknown",
                    f"{name!r} of stream {stream} has {what}, and is no column of its schema; "
                    "correct the name, or declare the column.",
                )
        found = []
        for one in declared:
            made: Field = {**one}
            made.pop("stored", None)
            made.pop("default", None)
            if stored.get(one["name"], one["name"]) != one["name"]:
                made["stored"] = stored[one["name"]]
            if one["name"] in self.defaults:
                made = with_default(made, self.defaults[one["name"]])
            found.append(made)
        return found


def _check_default(stream: str, old: Field, wanted: Field) -> None:
    if "default" in wanted and not same_default(old, wanted):
        raise default_is_fixed(stream, old, wanted)


def _check_wider(stream: str, old: Field, wanted: Field) -> None:
    if not holds(wanted["type"], old["type"]):
        raise InvalidInput(
            "column_type_differs",
            f"column {wanted['name']!r} is declared as {show(wanted['type'])}, but it is "
            f"{show(old['type'])} in stream {stream}, of which that does not hold every value; "
            "correct the file (a column's type can only become wider).",
        )


def _stored_otherwise(stream: str, column: Field, where: str, advice: object) -> InvalidInput:
    return InvalidInput(
        "column_unknown",
        f"the column {column['name']!r} of stream {stream} is called {stored_name(column)!r} in "
        f"files, and {where} names columns as files do; write {advice}.",
    )
