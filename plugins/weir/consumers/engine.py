"""What a reader needs of the engine that computes: Spark, with DataFrames, or pyarrow, with tables.

Which events a reader reads, who owns what, what counts, and what follows a failure is decided
without an engine. An engine reads these files, writes this result, and says what an error means.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from weir.adjunct.pins import Pin
from weir.adjunct.versions import AdjunctVersion
from weir.consumers.adjuncts import AdjunctStoreManager
from weir.controller.queries import Cut
from weir.controller.read_plan import Slices
from weir.errors import InvalidInput, WeirError
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.folder_files import Folder, FolderFile
from weir.model.schema import Field
from weir.queries.reader_groups.outputs.tables import Column

Frame = TypeVar("Frame")


@dataclass(frozen=True)
class Copy:
    """Rows for a table: the COPY that takes them, and the columns of the table for theirs, in their
    order. If the rows are ordered, two more columns come last."""

    table: str
    statement: str
    columns: Sequence[Column]

    @property
    def longest(self) -> dict[int, tuple[str, int]]:
        """The name and the maximum length of each column with a limited length, by its index."""
        return {
            i: (column.name, column.modifier - 4)
            for i, column in enumerate(self.columns)
            if column.kind == "varchar" and column.modifier >= 0
        }


class Adjuncts(Mapping[str, Frame]):
    """The stores of a batch: by name the table of the version that the batch is read with.

    Its columns are `_weir_key`, those of the value, and `_clock`, the clock of the key's last
    change.
    """

    pins: Mapping[str, Pin]

    def __iter__(self) -> Iterator[str]:
        return iter(self.pins)

    def __len__(self) -> int:
        return len(self.pins)

    @property
    def versions(self) -> dict[str, int | None]:
        """The number of each version; None for an empty table."""
        return {n: pin.version.version if pin.version else None for n, pin in self.pins.items()}

    def _pin(self, name: str) -> Pin:
        """Return what the batch reads of a store. Raises InvalidInput if it is not joined."""
        if name not in self.pins:
            raise InvalidInput(
                "join_invalid",
                f"adjunct store {name} is not joined (joined: {', '.join(self.pins) or 'none'}); "
                "name it in adjuncts.",
            )
        return self.pins[name]

    def enrich(
        self,
        events: Frame,
        name: str,
        on: Any,
        how: str = "left",
        *,
        as_of: bool | str = False,
        valid_from: str = "",
        prefix: str = "",
    ) -> Frame:
        """Return the events with the value columns of a store, which it has for the key `on`.

        `on`: a column of the events, or a transform of some, such as `upper(tail)`; or what the
        frame computes, a Column or an array. `how`: "left" keeps events without a match, with
        nulls; "inner" does not. `as_of`: False joins what the version has; True what held at the
        clock of each event (its `_clock`); a name joins what held at the time in this column of the
        events. `valid_from`: the value column with the time from which a value holds; empty: it
        holds from the clock at which it was committed. `prefix`: what the names of the value
        columns begin with.

        Raises InvalidInput for an unknown store, a wrong argument, columns of the same name, and
        for `as_of` without Spark; and Truncated if the store does not keep its changes for as long
        as `as_of` needs.
        """
        raise NotImplementedError


class Engine(Protocol[Frame]):
    """What computes for one reader."""

    def begin(self) -> None:
        """Make ready for a consumer, whose function may fail."""

    def frame(self, rows: object) -> Frame | None:
        """Return rows that a program made as a frame; None for what is none."""

    def columns(self, frame: Frame) -> list[Field]:
        """Return the columns of a frame in Spark's JSON form."""

    def is_nothing(self, frame: Frame) -> bool:
        """Return whether a result has neither rows nor columns, as an empty list has."""

    def without(self, frame: Frame, names: Collection[str]) -> Frame:
        """Return a frame without these columns."""

    def kept(self, frame: Frame) -> Frame:
        """Return a frame that is computed once, however often it is used, until `release`."""

    def release(self, frames: Sequence[Frame]) -> None:
        """Forget what was kept."""

    def read(self, read: Slices, order: str) -> Frame:
        """Return the events of a stream with their places, in an order of reading."""

    def merged(self, streams: Sequence[Slices], columns: Sequence[str] | None) -> Frame:
        """Return the events of several streams in write order, with `_stream` and their places."""

    def adjuncts(self, pins: Mapping[str, Pin], manager: AdjunctStoreManager) -> Adjuncts[Frame]:
        """Return the tables of a batch's stores."""

    def build_version(self, store: str, cut: Cut, clock: int) -> AdjunctVersion:
        """Build a version of a store that is complete to a cut."""

    def stage(self, opened: list[Attempt], frame: Frame) -> list[Staged]:
        """Write a frame for the one open attempt. If rows of it are rejected into a stream of their
        own, the attempt of that is added."""

    def write_folder(self, folder: Folder, frame: Frame) -> Sequence[FolderFile]:
        """Write the rows of a frame below a folder into which nobody has written, and return the
        files that are there. Raises Unavailable if the root takes no files, or if others may come
        there."""

    def copy(self, frame: Frame, copy: Copy) -> tuple[tuple[str, ...], int]:
        """Send the rows of a frame to a COPY. Return the transactions that count and the number of
        rows. Raises BadRows for a row that Postgres refuses, Unavailable if Postgres is away,
        Fenced if the batch's table of staging is gone."""

    def ordered(self, frame: Frame) -> Frame:
        """Return a frame with two more columns (`ORDER`): a zero, and the number of the row."""

    def failed_events(
        self, frame: Frame, group: str, reason: str, fields: Sequence[Field]
    ) -> Frame:
        """Return events on which a group failed as rows of `<stream>.rejected`. Their columns,
        `fields`, have the names in files, which are the same when they are put back."""

    def changed(self, names: Sequence[str], result: Frame, events: Frame) -> str:
        """Return the first of these columns that a result does not have as the events have it, or
        nothing."""

    def explaining(self) -> AbstractContextManager[None]:
        """Return a block in which files of the warehouse are read or written; what its storage
        refuses becomes an error that says so."""

    def of_storage(self, error: Exception) -> WeirError | None:
        """Return what it means that a function failed at a file of the warehouse, or at a full
        disk; None if it did not."""

    def caused_by_events(self, error: Exception) -> bool:
        """Return whether a smaller batch may succeed."""

    def is_programs(self, error: Exception) -> bool:
        """Return whether an error is a mistake in the program's text."""

    def sentence(self, error: Exception) -> str:
        """Return what went wrong, in one line."""
