"""Rejected rows of an append, refused or quarantined where it is committed: rows in = events +
rejected rows."""

import re
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from weir.controller.rejected import Example, make_rejected_stream, refusal, refused
from weir.controller.transactions import begin, check_attempt
from weir.inputs import text_guess
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.rejected import FAULT, ROW, SCHEMA
from weir.kernel.schema import from_arrow
from weir.kernel.stage import Layout
from weir.kernel.text_options import TextOptions
from weir.kernel.writer import TASK_BITS, write_batches
from weir.model.names import shortened
from weir.model.schema import SEQ, widening
from weir.warehouse.filesystem import filesystem

# From the rank of a row: the file that it is of, and its number there, from 0. No file: the rows
# come from a program, which is their source.
Origin = Callable[[int], tuple[str, int]]
_DECIMAL = re.compile(r"-?([0-9]+)\.([0-9]+)")
_PLACES = (1 << TASK_BITS) - 1
_ROWS = pa.schema(
    [
        (name, pa.int64() if name == "place" else pa.string())
        for name in (ROW, "source", "place", "reason", *FAULT)
    ]
)


def of_rows(rank: int) -> tuple[str, int]:
    """Return the origin of a row of a program."""
    return "", rank & _PLACES


def staged_rejected(
    app: Installation,
    staged: Staged,
    opened: list[Attempt],
    origin: Origin = of_rows,
) -> list[Staged]:
    """Return an append with that of its rejected rows to `<stream>.rejected`, whose attempt is
    added to the open ones. Raises BadRows with their number and an example if the stream does not
    quarantine them."""
    if not staged.rejected:
        return [staged]
    main, warehouse = staged.attempt, app.settings.warehouse
    _check(warehouse, staged, origin)
    attempt = begin(
        app.database, make_rejected_stream(app.database, main.stream),
        writer_id=f"rejected by {main.stream_id}", batch_id=str(main.transaction_number),
        fingerprint="rejected", lease=app.settings.transaction_lease, source=app.source,
        guard=lambda c: check_attempt(c, main),
    )  # fmt: skip
    assert isinstance(attempt, Attempt), main.stream  # it is committed together with the events
    opened.append(attempt)
    layout = Layout.of(warehouse, attempt, from_arrow(_ROWS))
    parts = (_with_origin(one, origin, app.source) for one in _parts(warehouse, staged))
    return [staged, layout.staged([write_batches(layout, parts)])]


def _check(warehouse: str, staged: Staged, origin: Origin) -> None:
    """Raise BadRows unless the stream quarantines all kinds of rows that were rejected."""
    counts = dict.fromkeys(refused(staged.attempt), 0)
    first: dict[str, dict[str, object]] = {}
    if not counts:
        return
    for part in _parts(warehouse, staged):
        for reason in counts:
            these = part.filter(pc.equal(part["reason"], reason))
            counts[reason] += these.num_rows
            if these.num_rows and reason not in first:
                first[reason] = these.slice(0, 1).to_pylist()[0]
    examples = [
        Example(reason, counts[reason], *_shown(example, origin), _change(staged.attempt, example))
        for reason in counts
        if (example := first.get(reason))
    ]
    if examples:
        raise refusal(staged.attempt, examples)


def _shown(example: dict[str, object], origin: Origin) -> tuple[str, str]:
    """Return where a rejected row is, and what it has."""
    source, number = origin(int(str(example[SEQ])))
    where, found = (f"{source!r}, row {number + 1}" if source else f"row {number + 1}"), ""
    if example["column"] is not None:
        text, kind = str(example["text"]), str(example["type"])
        found = f"column {example['column']!r} has {shortened(text, 60)}, which is not kept as "
        why = text_guess.reason([text], TextOptions())
        found += f"{kind}{f' ({why})' if why else ''}; the row is "
    return where, found + str(example[ROW])[:200]


def _change(attempt: Attempt, example: dict[str, object]) -> str:
    """Say how the column of whole numbers gets a type that holds a decimal, if that is what does
    not fit."""
    found = _DECIMAL.fullmatch(str(example["text"]))
    kind = next((o["type"] for o in attempt.fields or [] if o["name"] == example["column"]), None)
    if found is None or not isinstance(kind, str) or kind != example["type"]:
        return ""
    digits, scale = len(found[1]) + len(found[2]), len(found[2])
    return widening(str(attempt.stream), str(example["column"]), kind, f"decimal({digits},{scale})")


def _parts(warehouse: str, staged: Staged) -> Iterator[pa.RecordBatch]:
    """Yield the rejected rows (`SCHEMA`): the files by their first ranks, each in the order of its
    ranks."""
    system, base = filesystem(warehouse)
    for file in sorted(staged.rejected_files, key=lambda one: one.first_seq):
        with system.open_input_file(f"{base}/{file.path}") as source:
            yield from pq.ParquetFile(source).iter_batches(columns=SCHEMA.names)


def _with_origin(part: pa.RecordBatch, origin: Origin, writer: str) -> pa.RecordBatch:
    """Return rejected rows as rows of `<stream>.rejected`."""
    ranks = part[SEQ].to_numpy()
    tasks, of = np.unique(ranks >> TASK_BITS, return_inverse=True)
    sources = pa.array([origin(int(one) << TASK_BITS)[0] or writer for one in tasks], pa.string())
    given = {
        **{name: part[name] for name in (ROW, "reason", *FAULT)},
        "source": sources.take(pa.array(of)), "place": pa.array(ranks & _PLACES),
    }  # fmt: skip
    return pa.record_batch([given[name] for name in _ROWS.names], schema=_ROWS)
