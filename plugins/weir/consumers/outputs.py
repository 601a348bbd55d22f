"""The outputs of a consumer: streams, Parquet folders, tables."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.controller.locks import read_stream
from weir.errors import InvalidInput, either
from weir.model.names import stream_name
from weir.reader_groups.outputs.publication import INSERT, Publication, columns_of
from weir.reader_groups.outputs.tables import read_table, table_name
from weir.warehouse.paths import below_root

_TEXT = re.compile(r"(.*?)((?: +[a-z_]+=\S+)*)", re.DOTALL)
COMPRESSIONS = ("none", "snappy", "zstd", "gzip", "lz4")
# The options of each kind of output.
_OPTIONS = {
    "parquet": ("places", "partition_by", "compression", "rows_per_file"),
    "table": ("mode", "key", "newest", "call"),
}


@dataclass(frozen=True)
class Output:
    """`stream:scope/stream`, `parquet:folder` below an output root, or `table:schema.table`.

    `places`: whether a Parquet output keeps `_segment`, `_offset` and `_clock` of its rows. Events
    of a stream get new ones; a table keeps those for which it has a column. `publication`: how rows
    get into a table. `partition_by`: columns whose values name folders of a Parquet output.
    `compression`: "": Spark's default. `rows_per_file`: 0: any number.
    """

    kind: str
    name: str
    root: str = ""
    path: str = ""
    places: bool = False
    partition_by: tuple[str, ...] = ()
    compression: str = ""
    rows_per_file: int = 0
    publication: Publication = INSERT

    def __str__(self) -> str:
        """Return the output as a user writes it."""
        return f"{self.kind}:{self.name}"

    @property
    def identity(self) -> tuple[str, str, str]:
        """Return what the output is, independent of its spelling, so that two spellings can be
        compared."""
        return self.kind, self.root, self.path or self.name

    @classmethod
    def parse(cls, text: str, roots: Sequence[str]) -> "Output":
        """Return the output that a text names, with its options: `parquet:late places=yes`. Raises
        InvalidInput for another kind or option, a wrong name, or a path outside the output
        roots."""
        if not isinstance(text, str):
            raise InvalidInput(
                "output_invalid", f"output {text!r} is no text; write it as stream:scope/stream."
            )
        found = _TEXT.fullmatch(text.strip())
        assert found is not None, "anything is a name without options"
        output, written = found[1], found[2].split()
        kind, _, name = output.partition(":")
        options = _options(output, kind, written)
        if kind == "stream":
            return cls(kind, str(stream_name(name, reserved=False)))
        if kind == "parquet":
            root, path = below_root(name, roots, "output path")
            return cls(
                kind, name, root, path,
                places=_switch(output, "places", options),
                partition_by=columns_of(output, "partition_by", options.get("partition_by", "")),
                compression=_compression(output, options.get("compression", "")),
                rows_per_file=_count(output, "rows_per_file", options.get("rows_per_file", "0")),
            )  # fmt: skip
        if kind == "table":
            how = Publication(
                options.get("mode", "insert"),
                columns_of(output, "key", options.get("key", "")),
                columns_of(output, "newest", options.get("newest", "")),
                table_name(options["call"]) if "call" in options else "",
            )
            how.check(table_name(name))
            return cls(kind, name, publication=how)
        raise InvalidInput(
            "output_invalid", f"output {text!r} must begin with stream:, parquet: or table:."
        )

    def check(self, connection: Connection) -> None:
        """Check that the output can be written. Raises NotFound, or InvalidInput for a table that
        Weir may not write to."""
        if self.kind == "stream":
            read_stream(connection, stream_name(self.name))
        if self.kind == "table":
            read_table(connection, self.name, self.publication)

    def check_not_input(self, group: str, streams: Collection[str]) -> None:
        """Raise InvalidInput if it is one of the streams that are delivered to its consumer."""
        if self.kind == "stream" and self.name in streams:
            raise InvalidInput(
                "output_invalid",
                f"reader group {group} reads {self.name}, so it would read its own output {self} "
                "again in each run; name another stream, or write to it with a Reader of your own.",
            )


def check_named_once(outputs: Sequence[Output]) -> None:
    """Raise InvalidInput if two outputs of a consumer are the same."""
    names = [output.name for output in outputs]
    identities = {output.identity for output in outputs}
    if len(set(names)) < len(names) or len(identities) < len(names):
        raise InvalidInput(
            "argument_invalid",
            f"an output is named twice ({', '.join(names)}); name each output once.",
        )


def _options(output: str, kind: str, written: Sequence[str]) -> dict[str, str]:
    """Return the options of an output by their names. Raises InvalidInput for one that outputs of
    its kind do not have."""
    options: dict[str, str] = {}
    known = _OPTIONS.get(kind, ())
    for one in written:
        name, _, value = one.partition("=")
        if name not in known or not value or name in options:
            raise InvalidInput(
                "output_invalid",
                f"output {output} has the option {one!r}; a {kind} output takes "
                f"{', '.join(f'{name}=...' for name in known) or 'no options'}, each once.",
            )
        options[name] = value
    return options


def _switch(output: str, name: str, options: dict[str, str]) -> bool:
    value = options.get(name, "no")
    if value not in ("yes", "no"):
        raise InvalidInput(
            "output_invalid", f"{name} of output {output} is {value!r}; it must be yes or no."
        )
    return value == "yes"


def _compression(output: str, value: str) -> str:
    if value and value not in COMPRESSIONS:
        raise InvalidInput(
            "output_invalid",
            f"compression of output {output} is {value!r}; it must be {either(COMPRESSIONS)}.",
        )
    return value


def _count(output: str, name: str, value: str) -> int:
    if re.fullmatch(r"[0-9]{1,12}", value) is None:
        raise InvalidInput(
            "output_invalid", f"{name} of output {output} is {value!r}; it must be a whole number."
        )
    return int(value)
