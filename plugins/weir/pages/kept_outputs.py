"""The outputs that batches of the same events have written: of which batches, and their files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from typing import NamedTuple

import pyarrow as pa
from pyarrow import fs
from sqlalchemy import Connection

from weir.arrow.read import read_rows
from weir.controller.read_plan import FileSlice, plan_of_bounds
from weir.database.connection import Database
from weir.errors import InvalidInput, NotFound, Unavailable
from weir.kernel.folder_files import values_in
from weir.kernel.schema import to_arrow, to_read
from weir.kernel.stage import GROUP_ROWS
from weir.model.declared_columns import declared_columns
from weir.pages.differences import AT_ONCE, File, Source, Spans, check_time
from weir.queries.pages import group_work
from weir.queries.pages import outputs as sql
from weir.queries.pages.outputs import Reader
from weir.settings import Settings
from weir.warehouse.filesystem import filesystem
from weir.warehouse.paths import is_of_group, lies_below

NEWEST = 50  # batches that are looked through for one whose events were read again
MOST_BATCHES = 200  # that are compared with as many others
MOST_READERS = 1000  # batches, of all groups, that have read some events
Batches = Sequence[Reader]  # of one group, between two of its resets


class Wanted(NamedTuple):
    """What is to be compared: what a batch of a group has written to an output, with what another
    run has, which one of its batches names. What is empty is chosen."""

    group: str
    batch: int | None = None
    output: str = ""
    other: str = ""
    other_batch: int | None = None
    other_output: str = ""


class Limits(NamedTuple):
    """How much is compared: the files of each output, rows and bytes of both, and how long that may
    take."""

    files: int
    rows: int
    bytes: int
    seconds: float


class Pair(NamedTuple):
    """Batches that have read the same events, and which output of each: empty if they kept none.
    `asked`: the batch that it is about. `others`: all runs that have read its events, too."""

    asked: Reader
    old: Batches
    new: Batches
    old_output: str
    new_output: str
    others: Sequence[Batches]

    @property
    def within(self) -> Spans:
        """The events of the batch that it is about."""
        ordered = sorted(self.asked.bounds, key=_segment)
        return {
            segment: [(one["from"], one["to"]) for one in spans]
            for segment, spans in groupby(ordered, _segment)
        }

    @property
    def of_one_stream(self) -> bool:
        """Whether a segment and an offset say which event it is."""
        both = [*self.old, *self.new]
        return len({bound["stream"] for one in both for bound in one.bounds}) == 1


def find_pair(connection: Connection, wanted: Wanted) -> Pair | int | None:
    """Return what is compared with what: the number of the batch alone if no other run has made
    something of its events, None if no batch has. Raises NotFound for a group that there is not,
    and InvalidInput for a batch, a run or an output."""
    name = wanted.group
    if not group_work.is_group(connection, group=name):
        raise NotFound("group_not_found", f"there is no reader group {name}.")
    batch = wanted.batch or sql.read_again(connection, group=name, most=NEWEST)
    if batch is None:
        return None
    found = _readers(connection, name, [batch])
    asked = next((o for o in found if (o.reader_group, o.batch_id) == (name, batch)), None)
    if asked is None:
        raise InvalidInput(
            "argument_invalid",
            f"batch {batch:,} of reader group {name} is not recorded as committed, has read no "
            "event, or events of a stream that you don't see; the page of the group has its newest "
            "batches.",
        )
    runs = _runs(found)
    mine = runs.pop(_run(asked))
    others = sorted(runs.values(), key=lambda one: _later_choice(one, asked))
    chosen = not wanted.other and wanted.other_batch is None
    if not others or (chosen and _is_a_strangers(others[0], name)):
        return batch
    theirs = next((one for one in others if _is_wanted(one, wanted)), None)
    if theirs is None:
        raise InvalidInput(
            "argument_invalid",
            f"batch {batch:,} of reader group {name} has no event that such a run of "
            f"{wanted.other or 'another group'} has read; leave it out, and one is chosen.",
        )
    output = _output(mine, wanted.output)
    other = _output(theirs, wanted.other_output, like=output)
    if mine[-1].committed_at < theirs[-1].committed_at:
        return Pair(asked, mine, theirs, output, other, others)
    return Pair(asked, theirs, mine, other, output, others)


def widened(connection: Connection, pair: Pair, until: float) -> Pair:
    """Return a pair with all batches that have read events of one of its batches, and so on, so
    that both sides have read the same as far as they can have. Raises InvalidInput for too many,
    and at a time of `time.monotonic`."""
    sides, grows = [pair.old, pair.new], True
    while grows:
        check_time(until)
        grows = False
        for one, other in ((0, 1), (1, 0)):
            group, ids = sides[one][0].reader_group, [batch.batch_id for batch in sides[one]]
            runs = _runs(_readers(connection, group, ids))
            found = runs.get(_run(sides[other][0]), [])
            if len(found) > MOST_BATCHES:
                raise InvalidInput(
                    "answer_too_large",
                    "the batches of the two runs end at different events, and more than "
                    f"{MOST_BATCHES} of them hang together; write both outputs with places=yes, "
                    "and the rows of one batch can be told from those of others.",
                )
            if len(found) > len(sides[other]):
                sides[other], grows = found, True
    return pair._replace(old=sides[0], new=sides[1])


def unread(some: Batches, others: Batches) -> int:
    """Return how many events some batches have read that others have not."""
    left = 0
    there = [bound for one in others for bound in one.bounds]
    for bound in (bound for one in some for bound in one.bounds):
        shared = (
            min(bound["to"], one["to"]) - max(bound["from"], one["from"])
            for one in there
            if (one["stream"], one["segment"]) == (bound["stream"], bound["segment"])
        )
        left += bound["to"] - bound["from"] - sum(max(part, 0) for part in shared)
    return left


def opened(
    database: Database, settings: Settings, pair: Pair, limits: Limits
) -> tuple[Sequence[Source], Sequence[Source]]:
    """Return the rows of the old and of the new output. Raises NotFound if those of a batch are
    gone, InvalidInput if they are in too many files or too large."""

    def side(batches: Batches, output: str) -> Sequence[Source]:
        kind, _, name = output.partition(":")
        if kind == "stream":
            return database.snapshot(lambda c: _events(c, settings, batches, name))
        paths = list(_files(batches, name, settings.output_roots))
        if len(paths) > limits.files:
            raise _too_large(f"{len(paths):,} files", f"{limits.files:,}")
        return [_open(*one) for one in paths]

    old, new = side(pair.old, pair.old_output), side(pair.new, pair.new_output)
    if (rows := sum(sum(one.sizes) for one in (*old, *new))) > limits.rows:
        raise _too_large(f"{rows:,} rows", f"{limits.rows:,}")
    if (size := sum(one.bytes for one in (*old, *new))) > limits.bytes:
        raise _too_large(f"{size:,} bytes", f"{limits.bytes:,}")
    return old, new


@contextmanager
def reading() -> Iterator[None]:
    """Raise Unavailable for a file of an output that can't be read."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        said = str(error).partition("\n")[0]
        raise Unavailable(
            "output_not_readable",
            f"a file of these outputs can't be read ({said}); ask again, as an erasure may just "
            "have replaced it, or see to the output root.",
        ) from error


def _readers(connection: Connection, group: str, batches: Sequence[int]) -> list[Reader]:
    found = sql.readers(connection, group=group, batches=batches, most=MOST_READERS + 1)
    if len(found) > MOST_READERS:
        raise InvalidInput(
            "answer_too_large",
            f"more than {MOST_READERS:,} batches have read these events; choose a batch of fewer.",
        )
    return found


def _run(one: Reader) -> tuple[str, float]:
    return one.reader_group, one.run.timestamp() if one.run else 0.0


def _runs(found: Sequence[Reader]) -> dict[tuple[str, float], list[Reader]]:
    """Return batches by the runs that they belong to, each in the order of its batches."""
    return {run: list(some) for run, some in groupby(sorted(found, key=_placed), _run)}


def _placed(one: Reader) -> tuple[str, float, int]:
    return *_run(one), one.batch_id


def _later_choice(batches: Batches, asked: Reader) -> tuple[bool, bool, bool, float]:
    """Return what puts first the run that a batch is compared with: one that kept files, of the
    same group, before the batch, as late as can be."""
    last = batches[-1]
    return (
        not outputs_of(batches),
        last.reader_group != asked.reader_group,
        last.committed_at > asked.committed_at,
        -last.committed_at.timestamp(),
    )


def _is_a_strangers(batches: Batches, group: str) -> bool:
    """Return whether batches are of another group, which wrote nothing: a reader of its own."""
    return batches[0].reader_group != group and not any(one.outputs for one in batches)


def _is_wanted(batches: Batches, wanted: Wanted) -> bool:
    return wanted.other in ("", batches[0].reader_group) and (
        wanted.other_batch is None or wanted.other_batch in [one.batch_id for one in batches]
    )


def outputs_of(batches: Batches) -> list[str]:
    """Return the outputs of batches that are kept: of a table only the newest rows are."""
    names = {name for one in batches for name in one.outputs}
    return sorted(name for name in names if not name.startswith("table:"))


def _output(batches: Batches, wanted: str, like: str = "") -> str:
    """Return the output that is wanted of batches; if none is, the one that is called alike, or the
    first; empty if they have none."""
    there = outputs_of(batches)
    wanted = wanted if ":" in wanted or not wanted else f"parquet:{wanted}"
    if wanted and wanted not in there:
        raise InvalidInput(
            "argument_invalid",
            f"{wanted!r} is no output to Parquet or to a stream of these batches of reader group "
            f"{batches[0].reader_group}; they have {', '.join(there) or 'none'}.",
        )
    return wanted or (like if like in there else next(iter(there), ""))


def _files(
    batches: Batches, output: str, roots: Sequence[str]
) -> Iterator[tuple[fs.FileSystem, str, str, str]]:
    """Yield the files of an output: their file system, folder, what is below it, and the columns
    that name folders there. Only those below `roots`: those of a copy of an installation are
    recorded where the original has its own."""
    for batch in batches:
        for folder in batch.folders:
            if folder["output"] != output:
                continue
            if not lies_below(folder["root"], folder["path"], roots):
                raise NotFound(
                    "output_not_found",
                    f"what batch {batch.batch_id:,} of reader group {batch.reader_group} wrote to "
                    f"{output} is not below output_roots, as in a copy of another installation; "
                    "add its root if it is not one, or choose another batch.",
                )
            system, base = filesystem(folder["root"])
            where = f"{base}/{folder['path'].rstrip('/')}"
            selector = fs.FileSelector(where, recursive=True, allow_not_found=True)
            infos = (
                system.get_file_info(selector)
                if is_of_group(folder["path"], batch.reader_group)
                else []
            )
            there = [one.path[len(where) + 1 :] for one in infos if one.type == fs.FileType.File]
            below = sorted(one for one in there if one.endswith(".parquet") and not _hidden(one))
            if not below:
                raise NotFound(
                    "output_not_found",
                    f"of what batch {batch.batch_id:,} of reader group {batch.reader_group} wrote "
                    f"to {output} no file is left, as they were deleted or all rows erased; "
                    "choose another batch.",
                )
            yield from ((system, where, one, folder["partitions"]) for one in below)


@dataclass(frozen=True)
class Events:
    """Events that batches have appended to a stream, of one file."""

    settings: Settings
    slice: FileSlice
    schema: pa.Schema
    bytes: int

    @property
    def types(self) -> dict[str, pa.DataType]:
        """The types of the columns, by name."""
        return {column.name: column.type for column in self.schema}

    @property
    def sizes(self) -> list[int]:
        """How many events there are, all in one part."""
        return [self.slice.rows]

    def pieces(
        self, names: Sequence[str], part: int | None = None
    ) -> Iterator[tuple[int, dict[str, pa.Array]]]:
        """Yield the events as a `Source` does."""
        own = [name for name in names if name in self.schema.names]
        first, end = self.slice.first_row, self.slice.end_row
        begins = [first, *range(first - first % GROUP_ROWS + GROUP_ROWS, end, GROUP_ROWS), end]
        for begin, past in pairwise(begins):  # a row group at a time, however long its values are
            some = self.slice._replace(first_row=begin, end_row=past)
            rows = read_rows(self.settings, some, self.schema, own)
            for batch in rows.combine_chunks().to_batches(AT_ONCE):
                yield batch.num_rows, {name: batch.column(name) for name in own}


def _events(
    connection: Connection, settings: Settings, batches: Batches, stream: str
) -> list[Events]:
    ids = [one.batch_id for one in batches]
    found = sql.appended(connection, group=batches[0].reader_group, batches=ids, stream=stream)
    bounds = [bound for one in found for bound in one.bounds]
    slices, fields = plan_of_bounds(connection, found[0].stream_id, bounds)
    events = sum(one.events or 0 for one in found)
    if any(one.events is None for one in found) or events > sum(s.rows + s.holes for s in slices):
        raise NotFound(
            "output_not_found",
            f"events that batches {ids[0]:,} to {ids[-1]:,} of reader group "
            f"{batches[0].reader_group} have appended to {stream} were truncated, so they can't be "
            "compared; choose a later batch.",
        )
    size = sum(one.bytes or 0 for one in found) // max(len(slices), 1)
    return [Events(settings, one, to_read(fields), size) for one in slices]


def _hidden(path: str) -> bool:
    return path.rpartition("/")[2][:1] in "._"


def _open(system: fs.FileSystem, folder: str, below: str, partitions: str) -> File:
    columns = to_arrow(declared_columns(partitions)) if partitions else pa.schema([])
    texts = values_in(below)
    values = {
        column.name: pa.scalar(texts.get(column.name), pa.string()).cast(column.type)
        for column in columns
    }
    return File(partial(system.open_input_file, f"{folder}/{below}"), values)


def _segment(bound: dict[str, int]) -> int:
    return bound["segment"]


def _too_large(what: str, most: str) -> InvalidInput:
    return InvalidInput(
        "answer_too_large",
        f"the two outputs have {what}, and at most {most} are compared here; choose a batch of "
        "fewer events, or compare them in a terminal, or by a program.",
    )
