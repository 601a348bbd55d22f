"""Parquet files as rows of values, whoever reads them."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import repeat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from weir.errors import InvalidInput
from weir.inputs.files import Inputs
from weir.inputs.parquet_columns import ParquetFile, parquet_fields
from weir.inputs.parquet_footer import WrongFooter, digest_of, footer_bytes
from weir.inputs.parquet_values import check_structure, kept_or_marked, marks_of
from weir.inputs.rows import grouped, ranks_of
from weir.inputs.unreadable import (
    UnreadableFile,
    damage_of,
    damaged,
    one_line,
    stored,
    unreadable_now,
)
from weir.kernel.rejected import MALFORMED
from weir.kernel.schema import arrow_type
from weir.model.schema import SEQ, VOID, Field
from weir.warehouse.filesystem import filesystem

# About so many bytes at once, and at most so many rows: a long text that a file has once, in a
# dictionary, may be in each of them.
_BATCH, _BATCH_ROWS = 16 << 20, 1 << 11
_AT_ONCE = 64 << 20  # bytes of a row group that are read before they are needed


@dataclass(frozen=True)
class Groups:
    """Row groups of a file, which follow one another. `row`: the number of their first row."""

    file: int
    first: int
    end: int
    row: int
    bytes: int


@dataclass(frozen=True)
class ParquetValues:
    """The rows of Parquet files in the types of their columns."""

    root: str
    paths: tuple[str, ...]
    files: list[ParquetFile]
    fields: list[Field]
    pieces: list[Groups]

    def tables(self, piece: Groups) -> Iterator[pa.Table]:
        """Yield the rows of row groups, as `weir.inputs.rows.Values` says. A column that the file
        lacks is null. Raises InvalidInput for a damaged file; UnreadableFile if the storage does
        not give it, or another one."""
        path, file = self.paths[piece.file], self.files[piece.file]
        system, base = filesystem(self.root)
        try:
            with system.open_input_file(f"{base}/{path}") as source:
                yield from self._tables(source, path, file, piece)
        except OSError as error:  # as pyarrow says of damage, too
            if (damage := damage_of(self.root, path, "parquet")) is not None:
                raise damaged(path, damage) from None
            raise unreadable_now(path, error) from None
        except pa.ArrowNotImplementedError as error:
            raise InvalidInput(
                "file_invalid",
                f"pyarrow can't read the input file {path!r} ({one_line(str(error))}), so nothing "
                "was appended; write it again with other settings, such as the defaults of its "
                "writer.",
            ) from None
        except pa.ArrowException as error:
            if not stored(self.root, path):
                raise unreadable_now(path, error) from None
            raise damaged(path, one_line(str(error))) from None

    def _tables(
        self, source: pa.NativeFile, path: str, file: ParquetFile, piece: Groups
    ) -> Iterator[pa.Table]:
        data = _footer_of(source, path, file)
        metadata = pq.read_metadata(
            pa.BufferReader(file.footer.plain(data)), arrow_extensions_enabled=False
        )
        schema, groups = metadata.schema, range(piece.first, piece.end)
        wide = [schema.column(i).physical_type == "INT96" for i in range(len(schema))]
        large = max((file.footer.groups[i][2] for i in groups), default=0) > _AT_ONCE
        # Of times of 96 bits what is finer than a microsecond shows only in nanoseconds, which
        # have no room for all of their years.
        units = ("us", "ns") if any(wide) else ("us",)
        opened = partial(
            pq.ParquetFile, source, metadata=metadata, arrow_extensions_enabled=False,
            page_checksum_verification=True, pre_buffer=not large,
            buffer_size=max(1 << 16, _AT_ONCE // len(wide)) if large else 0,
        )  # fmt: skip
        reader, *finer = (opened(coerce_int96_timestamp_unit=unit) for unit in units)
        check_structure(path, file.columns, reader.schema_arrow)
        names = [schema.column(i).path for i, is_wide in enumerate(wide) if is_wide]
        row = piece.row
        for group in groups:
            rows, size, _ = file.footer.groups[group]
            most = max(1, min(_BATCH_ROWS, _BATCH * rows // max(1, size)))
            again = finer[0].iter_batches(most, [group], names) if finer else repeat(None)
            end = row + rows
            for found, fine in zip(reader.iter_batches(most, [group]), again, strict=False):
                numbers = np.arange(row, row + found.num_rows)
                table = self._valued(found, file, fine)
                yield table.append_column(SEQ, pa.array(ranks_of(piece.file, numbers)))
                row += found.num_rows
            if row != end:
                said = f"row group {group} does not have the {rows:,} rows that its footer says"
                raise damaged(path, said)

    def _valued(
        self, rows: pa.RecordBatch, file: ParquetFile, fine: pa.RecordBatch | None
    ) -> pa.Table:
        """Return rows in the types of their columns. Those with a value that its type does not keep
        are marked with the first of these."""
        own = {one["name"]: i for i, one in enumerate(file.columns)}
        columns, faults = {}, dict[int, tuple[str, str]]()
        for one in self.fields:
            name = one["name"]
            if name not in own or (kind := file.columns[own[name]]["type"]) == VOID:
                columns[name] = pa.nulls(rows.num_rows, arrow_type(one["type"]))
                continue
            digits = fine.column(name) if fine is not None and name in fine.schema.names else None
            columns[name], lost = kept_or_marked(
                rows.column(own[name]), kind, one, file.footer, digits
            )
            for row, why in lost.items():
                faults.setdefault(row, (name, why))
        return pa.table({**columns, MALFORMED: marks_of(rows, faults)})


def _footer_of(source: pa.NativeFile, path: str, file: ParquetFile) -> bytes:
    """Return the bytes of a footer. Raises UnreadableFile if they are not those that were
    checked."""
    with suppress(WrongFooter):
        data, _ = footer_bytes(source)
        if digest_of(data) == file.footer.digest:
            return data
    raise UnreadableFile(
        "file_unreadable",
        f"the input file {path!r} changed while it was read, so nothing was appended; append it "
        "again once nobody writes to it.",
    )


def parquet_values(inputs: Inputs, most: int) -> ParquetValues:
    """Return how to read the rows of Parquet files, whose footers were looked at. `most`: about so
    many bytes of a file one process reads.

    Raises InvalidInput as `parquet_fields`.
    """
    fields, files = parquet_fields(inputs)
    pieces = []
    for number, file in enumerate(files):
        sizes = [stored for _, _, stored in file.footer.groups]
        row = 0
        for part in grouped(range(len(sizes)), sizes, most):
            weight = sum(sizes[i] for i in part)
            pieces.append(Groups(number, part[0], part[-1] + 1, row, weight))
            row += sum(file.footer.groups[i][0] for i in part)
    paths = tuple(file.path for file in inputs.files)
    return ParquetValues(inputs.root, paths, files, fields, pieces)
