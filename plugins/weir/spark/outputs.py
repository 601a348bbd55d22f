"""The outputs of a consumer: streams, Parquet folders, tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.controller.locks import read_stream
from weir.errors import InvalidInput
from weir.model.names import stream_name
from weir.reader_groups.table_outputs import read_table, table_name
from weir.warehouse.paths import below_root


@dataclass(frozen=True)
class Output:
    """`stream:scope/stream`, `parquet:folder` below an output root, or `table:schema.table`."""

    kind: str
    name: str
    root: str = ""
    path: str = ""

    def __str__(self) -> str:
        """Return the output as a user writes it."""
        return f"{self.kind}:{self.name}"

    @property
    def place(self) -> tuple[str, str, str]:
        """Return what the output is, independent of its spelling, so that two spellings can be
        compared."""
        return self.kind, self.root, self.path or self.name

    @classmethod
    def parse(cls, text: str, roots: Sequence[str]) -> "Output":
        """Return the output that a text names. Raises InvalidInput for another kind, a wrong name,
        or a path outside the output roots."""
        kind, _, name = text.partition(":")
        if kind == "stream":
            return cls(kind, str(stream_name(name, reserved=False)))
        if kind == "parquet":
            root, path = below_root(name, roots, "output path")
            return cls(kind, name, root, path)
        if kind == "table":
            return cls(kind, table_name(name))
        raise InvalidInput(
            "output_invalid", f"output {text!r} must begin with stream:, parquet: or table:."
        )

    def check(self, connection: Connection) -> None:
        """Check that the output can be written. Raises NotFound, or InvalidInput for a table that
        Weir may not write to."""
        if self.kind == "stream":
            read_stream(connection, stream_name(self.name))
        if self.kind == "table":
            read_table(connection, self.name)
