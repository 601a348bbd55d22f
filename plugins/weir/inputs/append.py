"""Append files as one transaction, whatever reads their rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from weir.controller.attempts import writing
from weir.controller.commit import commit_begun
from weir.controller.staged import check_written
from weir.controller.transactions import Committed, begin
from weir.errors import Conflict, counted
from weir.inputs.files import Inputs
from weir.inputs.unchanged import check_unchanged
from weir.installation.opened import Installation
from weir.kernel.attempt import Attempt, Staged
from weir.model.names import StreamName

# Writes the rows of files for the one open attempt, and returns the appends to commit together. If
# there are rejected rows, the attempt that has them is added to the open ones.
Stage = Callable[[Inputs, list[Attempt]], list[Staged]]


@dataclass(frozen=True)
class FilesOf:
    """How files are appended to a stream.

    `again`: an id under which the same files are appended once more on purpose. `batch`: an id in
    place of the files, and which files were asked for: what was committed under it is found even if
    a folder has other files by now. `complete_until`: the event time before which the writer has
    appended everything, with them.
    """

    stream: StreamName
    inputs: Inputs
    again: str = ""
    batch: tuple[str, str] | None = None
    complete_until: datetime | str | None = None


def append_files(app: Installation, files: FilesOf, stage: Stage) -> Committed:
    """Append files in one transaction and return what was committed. The same files again append
    nothing. `stage` writes their rows.

    Raises Conflict for a file that another transaction has appended, or that changed since it was
    appended, and if the stream is sealed; BadRows with the number of bad rows and an example;
    InvalidInput for columns that do not fit; UnreadableFile for a file that changed while it was
    read; NotFound; Fenced if another try took over.
    """
    name, inputs, batch = files.stream, files.inputs, files.batch
    try:
        opened = begin(
            app.database, name, writer_id="weir_ingest",
            batch_id=batch[0] if batch else inputs.batch_id + files.again,
            fingerprint=batch[1] if batch else inputs.fingerprint,
            lease=app.settings.transaction_lease, source=app.source, inputs=inputs.named,
            allow_repeated_files=bool(files.again), complete_until=files.complete_until,
        )  # fmt: skip
    except Conflict as error:
        if batch and error.code == "input_changed":
            raise Conflict(
                "request_reused",
                f"batch_id {batch[0]!r} was used for other files of stream {name}, so these "
                "would not be appended; give them a batch_id of their own.",
            ) from None
        raise
    if isinstance(opened, Committed):
        app.say(
            f"nothing appended: transaction {opened.transaction_number} of {name} holds these "
            f"files already ({counted(opened.events, 'event')})"
        )
        return opened
    attempts = [opened]
    with writing(app.database, app.settings, attempts):
        staged = stage(inputs, attempts)
        if inputs.guesses_types and not any(one.files for one in staged):
            app.say("the files have no rows, so no types of columns are fixed")
            staged = [replace(one, fields=one.attempt.fields) for one in staged]
        check_unchanged(inputs)
        return commit(app, staged)


def commit(app: Installation, staged: Sequence[Staged]) -> Committed:
    """Commit staged appends in one transaction and return the first. Raises like
    `weir.controller.commit.commit`."""
    check_written(app.settings.warehouse, staged)
    committed = commit_begun(app.database, *staged)[0]
    app.say(
        f"committed {counted(committed.events, 'event')} in {counted(committed.files, 'file')} "
        f"({committed.bytes:,} bytes) to {committed.stream}"
        + (f"; {committed.rejected:,} rows rejected" if committed.rejected else "")
        + (f"; {committed.late:,} events are late" if committed.late else "")
        + (f"; {committed.ahead:,} are later than now" if committed.ahead else "")
        + (f"; {committed.behind:,} are far before the others" if committed.behind else "")
    )
    return committed
