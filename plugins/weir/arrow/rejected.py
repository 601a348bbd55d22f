"""Rejected rows of an append, refused or quarantined where it is committed."""

import pyarrow as pa
import pyarrow.parquet as pq

from weir.controller.rejected import Example, make_rejected_stream, refusal, refused
from weir.controller.transactions import begin, check_attempt
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.stage import stage_table
from weir.model.names import shortened
from weir.model.schema import SEQ
from weir.warehouse.filesystem import filesystem


def staged_rejected(app: Installation, staged: Staged, opened: list[Attempt]) -> list[Staged]:
    """Return an append with that of its rejected rows to `<stream>.rejected`, whose attempt is
    added to the open ones. Raises BadRows with their number and an example if the stream does not
    quarantine them."""
    if not staged.rejected:
        return [staged]
    main = staged.attempt
    system, base = filesystem(app.settings.warehouse)
    parts = []
    for file in staged.rejected_files:
        with system.open_input_file(f"{base}/{file.path}") as source:
            parts.append(pq.ParquetFile(source).read())
    rows = pa.concat_tables(parts).sort_by(SEQ)
    bad: list[Example] = []
    for reason in refused(main):
        these = [one for one in rows.to_pylist() if one["reason"] == reason]
        if these:
            example, shown = these[0], ""
            if example["column"] is not None:
                text = shortened(example["text"], 60)
                shown = f"column {example['column']!r} has {text}, which is not kept as "
                shown += f"{example['type']}; the row is "
            shown += example["row"][:200]
            bad.append(Example(reason, len(these), f"row {example['place'] + 1}", shown))
    if bad:
        raise refusal(main, bad)
    attempt = begin(
        app.database, make_rejected_stream(app.database, main.stream),
        writer_id=f"rejected by {main.stream_id}", batch_id=str(main.transaction_number),
        fingerprint="rejected", lease=app.settings.transaction_lease, source=app.source,
        guard=lambda c: check_attempt(c, main),
    )  # fmt: skip
    assert isinstance(attempt, Attempt), main.stream  # it is committed together with the events
    opened.append(attempt)
    rows = rows.drop_columns([SEQ]).append_column(
        "source", pa.repeat(pa.scalar(app.source), rows.num_rows)
    )
    return [staged, stage_table(app.settings.warehouse, attempt, rows)]
