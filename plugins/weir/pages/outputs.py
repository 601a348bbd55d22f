"""What a changed function has changed: two outputs that batches have made of the same events, row
by row. The rows are data, as events are."""

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, TypeVar

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from pydantic import BaseModel
from sqlalchemy import Connection

from weir.database.connection import Database
from weir.errors import InvalidInput
from weir.front_ends import do
from weir.kernel.schema import from_arrow
from weir.model.schema import show
from weir.pages.answering import Asked, Tagged, within
from weir.pages.differences import PLACE, Compared, NoPlaces, Source, columns_of, compare
from weir.pages.differences import Column as Both
from weir.pages.events import LONGEST, MOST_COLUMNS, one_of_few, text_of
from weir.pages.kept_outputs import (
    Batches,
    Limits,
    Pair,
    Wanted,
    find_pair,
    opened,
    outputs_of,
    reading,
    unread,
    widened,
)
from weir.settings import Settings

Found = TypeVar("Found")
router = APIRouter(route_class=Tagged, tags=["reader groups"])

PAGE = Limits(200, 2_000_000, 512 << 20, 20.0)
_BEFORE = 20  # characters of a long value before the first that differs


class Run(BaseModel):
    """Batches of a group, between two of its resets, that have read the events. `output`: which of
    their `outputs` to Parquet and to streams is compared."""

    group: str
    first_batch: int
    last_batch: int
    events: int
    rejected: int
    committed_at: datetime
    functions: list[str]
    outputs: list[str]
    output: str


class Column(BaseModel):
    """A column with its types, in words, in the old and in the new output: null where it has no
    such column. `compared`: whether its values are."""

    name: str
    old: str | None
    new: str | None
    compared: bool


class Row(BaseModel):
    """A row that is not in both outputs, as texts by column: null for a value that is missing.
    `changed`: the columns that have changed."""

    old: list[str | None] | None
    new: list[str | None] | None
    changed: list[int]


class Outputs(BaseModel):
    """Two outputs of the same events. `lacks`: why they can't be compared, with what to do. `said`:
    how they were compared, and what does not count. The counts are of rows; `rows` are the first of
    each kind. `others`: all runs that have read events of `batch`, too."""

    batch: int | None
    lacks: str | None = None
    old: Run | None = None
    new: Run | None = None
    others: list[Run] = []
    said: list[str] = []
    same: int = 0
    changed: int = 0
    only_old: int = 0
    only_new: int = 0
    columns: list[Column] = []
    rows: list[Row] = []


Number = Annotated[int | None, Query(ge=1, lt=2**62)]


@router.get("/groups/{name}/outputs")
def show_outputs(
    asked: Asked,
    request: Request,
    name: str,
    batch: Number = None,
    output: str = "",
    other: Annotated[str, Query(description="the group of the other run")] = "",
    other_batch: Number = None,
    other_output: str = "",
    key: Annotated[str, Query(max_length=2000, description="columns, with commas")] = "",
    limit: Annotated[int, Query(ge=1, le=100)] = 25,
    conn_id: str = "",
) -> Outputs:
    """Return what two runs have made of the events of a batch, row by row: the newest that was read
    twice, and the run before, if nothing else is given. It reads both outputs."""
    wanted = Wanted(name, batch, output, other, other_batch, other_output)
    settings_of: Callable[[str], Settings] = request.app.state.settings_of
    with one_of_few():
        return compared(asked, settings_of(conn_id), wanted, key, limit, PAGE)


def compared(
    database: Database, settings: Settings, wanted: Wanted, key: str, most: int, limits: Limits
) -> Outputs:
    """Return what two runs have made of the events of a batch. `key`: columns, with commas. `most`:
    rows of each kind to return.

    Raises NotFound for a group that there is not, or files that are gone; InvalidInput for a batch,
    an output or a key that there is not, and for too much; Unavailable if a file can't be read.
    """
    until = time.monotonic() + limits.seconds
    asked = database.snapshot(lambda c: _in_time(c, until, lambda: find_pair(c, wanted)))
    if not isinstance(asked, Pair):
        return Outputs(batch=asked, lacks=_read_once(wanted.group, asked))
    pair = asked
    if not (pair.old_output and pair.new_output):
        return _answer(pair, lacks=_kept_none(pair))
    names = [one.strip() for one in key.split(",") if one.strip()]
    with reading():
        old, new = opened(database, settings, pair, limits)
        by_event = pair.of_one_stream and _have_places([*old, *new])
        if by_event:
            try:
                found = compare(
                    old, new, columns_of(old, new), key=names or PLACE, within=pair.within,
                    most=most, until=until,
                )  # fmt: skip
            except NoPlaces:
                by_event = False
        if not by_event:
            pair = database.snapshot(lambda c: _in_time(c, until, lambda: widened(c, asked, until)))
            old, new = opened(database, settings, pair, limits)
            found = compare(old, new, columns_of(old, new), key=names, most=most, until=until)
    said = [_way(names, by_event=by_event), *_unread(pair, by_event=by_event), *_columns(found)]
    answer = _answer(pair, said=said)
    return answer.model_copy(update=_shown(found, names))


def _in_time(connection: Connection, until: float, find: Callable[[], Found]) -> Found:
    refusal = InvalidInput(
        "answer_too_large",
        "it takes too long to find the batches that have read these events; choose a batch of "
        "fewer events.",
    )
    with within(connection, max(until - time.monotonic(), 0.001), refusal):
        return find()


def _read_once(group: str, batch: int | None) -> str:
    of = "the newest batches" if batch is None else f"batch {batch:,}"
    reset = do("reset_reader_group", reader_group=group, to="start", allow_repeat=True)
    fork = do("fork_reader_group", reader_group=group, new_reader_group=f"{group}-new", at="head")
    return (
        f"no other run that is still recorded has made something of the events of {of} of reader "
        f"group {group}, so there is nothing to compare; {reset}, or {fork}, and process them with "
        "the changed function: both outputs are kept."
    )


def _kept_none(pair: Pair) -> str:
    batches = pair.new if pair.old_output else pair.old
    others = sorted({name for one in batches for name in one.outputs})
    wrote = "wrote no row that you may see"
    if others:
        wrote = f"wrote to {', '.join(others)}, where only the newest rows are"
    return (
        f"{_of(batches)} {wrote}; to compare, process the events with both functions to a Parquet "
        "output, each in a fork of the group."
    )


def _of(batches: Batches) -> str:
    first, last = batches[0].batch_id, batches[-1].batch_id
    which = f"batch {first:,}" if first == last else f"batches {first:,} to {last:,}"
    return f"{which} of reader group {batches[0].reader_group}"


def _have_places(files: Sequence[Source]) -> bool:
    return all(file.types.get(name) == pa.int64() for file in files for name in PLACE)


def _way(key: Sequence[str], *, by_event: bool) -> str:
    if key:
        return f"Rows belong together by the key: {', '.join(key)}."
    if by_event:
        return "Rows belong together by their event: both outputs have its segment and offset."
    return (
        "Rows are compared by all that they hold, so one that changed counts twice: as only in the "
        "old, and as only in the new output. Name the columns of a key to see what became of which "
        "row, or let the consumer write a Parquet output with places=yes."
    )


def _unread(pair: Pair, *, by_event: bool) -> list[str]:
    said = []
    for some, others, side in ((pair.old, pair.new, "old"), (pair.new, pair.old, "new")):
        mine = [pair.asked] if by_event and pair.asked in some else some
        if by_event and mine is some:
            continue
        if left := unread(mine, others):
            said.append(
                f"The {side} batches have read {left:,} events that the others have not; what was "
                "made of these is only here."
            )
    return said + [
        f"The {side} batches have rejected {count:,} of their events."
        for some, side in ((pair.old, "old"), (pair.new, "new"))
        if (count := sum(one.rejected for one in some))
    ]


def _columns(found: Compared) -> list[str]:
    """Return what differs in the columns, in sentences."""
    columns = found.columns
    only = [
        (side, [one.name for one in columns if getattr(one, lacking) is None])
        for side, lacking in (("old", "new"), ("new", "old"))
    ]
    said = [
        f"Only the {side} output has: {', '.join(names)}; no row differs for that."
        for side, names in only if names
    ]  # fmt: skip
    for one in columns:
        if one.old is not None and one.new is not None and one.old != one.new:
            how = "" if one.kind else ", which can't be compared; no row differs for that"
            said.append(f"{one.name} was {_words(one.old)} and is {_words(one.new)}{how}.")
        elif one.old is not None and one.new is not None and one.kind is None:
            said.append(f"{one.name} can't be compared; no row differs for that.")
    return said


def _words(kind: pa.DataType) -> str:
    """Return a type as people know it."""
    try:
        return show(from_arrow(pa.schema([pa.field("x", kind)]))[0]["type"])
    except InvalidInput:
        return str(kind)


def _answer(pair: Pair, lacks: str | None = None, said: Sequence[str] = ()) -> Outputs:
    return Outputs(
        batch=pair.asked.batch_id, lacks=lacks, said=list(said),
        old=_run(pair.old, pair.old_output), new=_run(pair.new, pair.new_output),
        others=[_run(one, "") for one in pair.others],
    )  # fmt: skip


def _run(batches: Batches, output: str) -> Run:
    functions = {
        f"{one.function} {one.function_version or ''}".strip() for one in batches if one.function
    }
    return Run(
        group=batches[0].reader_group, first_batch=batches[0].batch_id,
        last_batch=batches[-1].batch_id, events=sum(one.events for one in batches),
        rejected=sum(one.rejected for one in batches), committed_at=batches[-1].committed_at,
        functions=sorted(functions), outputs=outputs_of(batches), output=output,
    )  # fmt: skip


def _shown(found: Compared, key: Sequence[str]) -> dict[str, object]:
    """Return what of an answer says what differs. The columns of the key come first, then those
    that have changed, as not all may be shown."""
    changed = {name for row in found.rows for name in row.changed}
    columns = sorted(found.columns, key=lambda one: (one.name not in key, one.name not in changed))[
        :MOST_COLUMNS
    ]
    names = [one.name for one in columns]
    rows = [
        Row(
            old=_texts(names, row.old, row.new),
            new=_texts(names, row.new, row.old),
            changed=[i for i, name in enumerate(names) if name in row.changed],
        )
        for row in found.rows
    ]
    return {
        "same": found.same, "changed": found.changed, "only_old": found.only_old,
        "only_new": found.only_new, "columns": [_column(one) for one in columns], "rows": rows,
    }  # fmt: skip


def _column(one: Both) -> Column:
    old, new = (None if kind is None else _words(kind) for kind in (one.old, one.new))
    return Column(name=one.name, old=old, new=new, compared=one.kind is not None)


def _texts(
    names: Sequence[str], row: dict[str, object] | None, other: dict[str, object] | None
) -> list[str | None] | None:
    if row is None:
        return None
    return [_cut(text_of(row.get(n)), text_of((other or {}).get(n))) for n in names]


def _cut(text: str | None, other: str | None) -> str | None:
    """Return a part of a text that is long: its beginning, or from where another differs."""
    if text is None or len(text) <= LONGEST:
        return text
    pairs = enumerate(zip(text, other or text, strict=False))
    first = next((i for i, (one, two) in pairs if one != two), 0)
    begin = max(first - _BEFORE, 0) if first > LONGEST - _BEFORE else 0
    end = begin + LONGEST
    return f"{'… ' if begin else ''}{text[begin:end]}{' …' if end < len(text) else ''}"
