"""The columns that the files of a stream have: also those that are dropped, and all names that they
have had."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.controller.streams import schema_versions
from weir.model.schema import Field, stored_name


@dataclass(frozen=True)
class Columns:
    """The versions of a stream's schema, oldest first."""

    versions: Sequence[list[Field]]

    @classmethod
    def of(cls, connection: Connection, stream_id: int) -> "Columns":
        """Return those of a stream."""
        return cls([fields for _, fields in schema_versions(connection, stream_id)])

    @property
    def of_files(self) -> list[Field]:
        """The columns of now, and after them those that are dropped, which files still have."""
        found = list(self.versions[-1]) if self.versions else []
        there = {stored_name(field) for field in found}
        for version in reversed(self.versions):
            for field in version:
                stored = stored_name(field)
                if stored not in there:
                    there.add(stored)
                    # No column may have this name, so it is that of no other.
                    found.append({**field, "name": f"{field['name']} (dropped: {stored})",
                                  "stored": stored})  # fmt: skip
        return found

    def now(self, name: str) -> list[Field]:
        """Return the column that has a name now, in whatever case; none if there is no such."""
        return [
            field for version in self.versions[-1:] for field in version
            if field["name"].lower() == name.lower()
        ]  # fmt: skip

    def ever(self, name: str) -> list[Field]:
        """Return the columns of files that have or had a name, in whatever case."""
        stored = {
            stored_name(field) for version in self.versions for field in version
            if field["name"].lower() == name.lower()
        }  # fmt: skip
        return [field for field in self.of_files if stored_name(field) in stored]

    def names(self, fields: Iterable[Field]) -> set[str]:
        """Return all names that some columns have or had, in lower case."""
        stored = {stored_name(field) for field in fields}
        return {
            field["name"].lower() for version in self.versions for field in version
            if stored_name(field) in stored
        }  # fmt: skip
