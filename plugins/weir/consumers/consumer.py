"""Consumers: call a function with each batch of a reader, and handle its failures."""

import inspect
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic, NotRequired, TypedDict

from sqlalchemy import Connection

from weir.consumers.adjuncts import Binding, bind
from weir.consumers.engine import Engine, Frame
from weir.consumers.function_source import source_of
from weir.consumers.open_batch import Done, OpenBatch, list_folders
from weir.consumers.outputs import Output, check_named_once
from weir.consumers.own_frames import own_frames
from weir.consumers.places import check_last_row_known
from weir.consumers.reader import Reader
from weir.errors import BadRows, BatchFailed, InvalidInput, WeirError, check_choice, exited
from weir.front_ends import do
from weir.installation.opened import Installation
from weir.model.names import stream_name
from weir.reader_groups.batches.history import rejected_of
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.group_streams import group_streams

Function = Callable[..., object]  # a frame, or a dictionary with a frame for each output
ON_ERROR = ("stop", "split", "quarantine")
_LONGEST_PAUSE = 60.0  # seconds before a batch is read again


class Consumed(TypedDict):
    """What a run has read: its batches, and the sums of their events and rejected events. `end`: a
    sentence if the group has reached its end."""

    reader_group: str
    batches: list[Done]
    events: int
    rejected: int
    end: NotRequired[str]


@dataclass(frozen=True)
class Consumer(Generic[Frame]):
    """A reader of a group, and what it does with the events of each batch.

    `on_error` says what happens after a failure that the events may have caused. "stop": the batch
    stays open. "split": the batch is halved until the failing event is alone, what comes before it
    is committed, and the run stops. "quarantine": the same, but the event goes to
    `<stream>.rejected` and the run continues.

    `parameters`: keyword arguments of the function. `retries`: how often a batch that failed for
    another reason than the program's text is read again, before `on_error` applies. If `reading`
    has adjunct stores, the function gets another keyword argument, `adjuncts`: the stores of the
    batch (`Adjuncts`).
    """

    installation: Installation
    engine: Engine[Frame]
    group: str
    reader_id: str
    function: Function
    outputs: tuple[Output, ...]
    reading: Reading
    on_error: str = "stop"
    parameters: Mapping[str, object] = field(default_factory=dict)
    retries: int = 0

    def __post_init__(self) -> None:
        check_named_once(self.outputs)
        check_choice("on_error", self.on_error, ON_ERROR)
        if "adjuncts" in self.parameters:
            raise InvalidInput(
                "argument_invalid",
                "a parameter is named adjuncts, as the argument with the adjunct stores is; choose "
                "another name.",
            )
        check_parameters(self.function, self._keywords({}))

    def run(self) -> Consumed:
        """Process batch after batch up to the tail at the start of the run.

        Raises BatchFailed with the batch and the cause.
        """
        self.installation.database.transaction(self._check)
        behind = self._list_folders()  # also those of a run that was killed after its last commit
        done: list[Done] = []
        shown: set[str] = set()  # the frames of the function that failed, which are shown once
        failed: set[int] = set()  # batches of a single event that failed in this run
        tried: Counter[int] = Counter()  # how often a batch was read again
        app = self.installation
        reader = Reader(
            app, self.engine, self.group, self.reading, reader_id=self.reader_id,
            function=source_of(self.function),
        )  # fmt: skip
        self.engine.begin()
        with reader:
            for batch in reader:
                try:
                    done.append(self._process(batch))
                except Exception as error:
                    self._show_frames(error, shown)
                    if self._tries_again(batch, error, tried):
                        continue
                    if self._give_up(batch, error, failed):
                        done.append(batch.reject(error))
        behind += [name for one in done for name in one["unlisted"]]
        if behind and (unlisted := self._list_folders()):
            raise BatchFailed(
                "manifest_not_written",
                f"reader group {self.group} has committed all its batches, but _manifest.json of "
                f"{'; '.join(unlisted)}, so its readers do not see the newest files yet; the next "
                "run writes it again.",
                retryable=True,
            )
        return {
            "reader_group": self.group,
            "batches": done,
            "events": sum(one["events"] for one in done),
            "rejected": sum(one["rejected"] for one in done),
        }

    def binding(self, connection: Connection) -> Binding:
        """Return the stores that it binds, and which streams are not delivered to it. Raises
        NotFound or InvalidInput."""
        return bind(connection, self.group, self.reading.adjuncts, self.reading.manager)

    def _check(self, connection: Connection) -> None:
        """Check the outputs before a batch is opened. Raises NotFound or InvalidInput for a wrong
        one."""
        for output in self.outputs:
            output.check(connection)
        binding = self.binding(connection)
        streams = [
            stream.name
            for stream in group_streams(connection, self.group)
            if stream.stream_id not in binding.not_delivered
        ]
        for output in self.outputs:
            output.check_not_input(self.group, streams)
            if output.publication.ordered:
                check_last_row_known(connection, streams, self.reading.order, output)
            if output.kind == "stream":
                binding.check_output(self.group, output.name)
        if self.on_error == "quarantine":
            for name in streams:
                stream_name(name, reserved=False)  # a stream of rejected rows has none for its own

    def _list_folders(self) -> list[str]:
        """Write each `_manifest.json`. Return the ones that could not be written, with the
        reasons."""
        app, say_why = self.installation, self.engine.sentence
        parquet = [output for output in self.outputs if output.kind == "parquet"]
        tried = [(one, list_folders(app, self.group, one, say_why)) for one in parquet]
        return [f"{one} could not be written ({why})" for one, why in tried if why]

    def _process(self, batch: OpenBatch[Frame]) -> Done:
        kept: list[Frame] = []
        try:
            for output, frame in self._results(batch, kept):
                batch.write(output, frame)
            return batch.commit()
        finally:
            self.engine.release(kept)

    def _results(self, batch: OpenBatch[Frame], kept: list[Frame]) -> list[tuple[Output, object]]:
        """Call the function. Return for each output its rows; the events are computed once for
        all of them."""
        several = len(self.outputs) > 1
        given = {
            name: self.engine.kept(frame) if several else frame
            for name, frame in batch.frames.items()
        }
        if several:
            kept += given.values()
        result = self._call(batch, next(iter(given.values())) if len(given) == 1 else given)
        names = {output.name for output in self.outputs}
        if isinstance(result, dict):
            frames = {name: self.engine.frame(rows) for name, rows in result.items()}
        else:
            frame = self.engine.frame(result)
            frames = dict.fromkeys(names, frame)
            if several and frame is not None:
                kept.append(self.engine.kept(frame))
        if set(frames) != names or any(frame is None for frame in frames.values()):
            got: object = type(result).__name__
            if isinstance(result, dict):
                got = {str(name): type(frame).__name__ for name, frame in result.items()}
            raise InvalidInput(
                "function_invalid",
                f"the function returned {got}; it must return rows (a DataFrame, or with pyarrow "
                "a table or a list of dictionaries), or a dictionary with rows for each of "
                f"{sorted(names)}.",
            )
        return [(output, frames[output.name]) for output in self.outputs]

    def _call(self, batch: OpenBatch[Frame], events: Frame | dict[str, Frame]) -> object:
        """Call the function with the events, or with those of each stream by its name."""
        try:
            return self.function(events, **self._keywords(batch.adjuncts))
        except SystemExit as error:
            raise exited("the function", error) from error

    def _keywords(self, adjuncts: Mapping[str, Frame]) -> dict[str, object]:
        return {**self.parameters, **({"adjuncts": adjuncts} if self.reading.adjuncts else {})}

    def _show_frames(self, error: Exception, shown: set[str]) -> None:
        """Show the lines of the user's code that failed, once in a run: the halves of a batch fail
        at the same ones."""
        frames = own_frames(error)
        where = "\n".join(line for line in frames if line.startswith(" "))
        if frames and where not in shown:
            shown.add(where)
            self.installation.say("\n".join(["the function failed at", *frames]))

    def _tries_again(self, batch: OpenBatch[Frame], error: Exception, tried: Counter[int]) -> bool:
        """Discard what a failed batch has written, so that it is the next one again, if it may be
        read once more."""
        if isinstance(error, WeirError) and not isinstance(error, BadRows):
            return False
        if tried[batch.batch_id] >= self.retries or self.engine.is_programs(error):
            return False
        tried[batch.batch_id] += 1
        self.installation.say(
            f"{batch} failed and is read again ({tried[batch.batch_id]} of {self.retries} "
            f"retries): {self.engine.sentence(error)}"
        )
        batch.again()
        time.sleep(min(2.0 ** (tried[batch.batch_id] - 1), _LONGEST_PAUSE))
        return True

    def _give_up(self, batch: OpenBatch[Frame], error: Exception, failed: set[int]) -> bool:
        """Decide what follows a failure. Return True if the batch's single event is to be rejected,
        False to continue with the next batch; otherwise raise the error, or BatchFailed.

        `failed` has the batches that failed with their single event before in this run. The number
        of attempts would not do, because it also counts kills.
        """
        if isinstance(error, WeirError) and not isinstance(error, BadRows):
            raise error
        if lost := self.engine.of_storage(error):
            raise lost from error
        if self.on_error == "stop" or not self.engine.caused_by_events(error):
            raise BatchFailed(
                "batch_failed",
                f"{batch} failed and stays open{_unknown(batch, error)}: "
                f"{self.engine.sentence(error)}",
                retryable=self._is_retryable(error),
            ) from error
        if batch.size > 1:
            batch.split(error)
            return False
        if batch.batch_id not in failed:  # it must fail twice, to rule out a passing cause
            failed.add(batch.batch_id)
            batch.again()
            return False
        if self.on_error == "split":
            raise BatchFailed(
                "event_failed",
                f"{batch} is the single event that fails (all before it are committed): "
                f"{self.engine.sentence(error)}",
                retryable=self._is_retryable(error),
            ) from error
        self._check_rejected(batch, error)
        return True

    def _is_retryable(self, error: Exception) -> bool:
        return bool(getattr(error, "retryable", not self.engine.is_programs(error)))

    def _check_rejected(self, batch: OpenBatch[Frame], error: Exception) -> None:
        """Raise BatchFailed if the group has rejected so many events in the last 24 hours that the
        function, not the events, must be the cause."""
        most = self.installation.settings.rejected_events
        rejected = self.installation.database.transaction(lambda c: rejected_of(c, self.group))
        if rejected >= most:
            raise BatchFailed(
                "too_many_rejected",
                f"{batch} fails, and reader group {self.group} already rejected {rejected:,} "
                "events in the last 24 hours: the function probably fails for all of them; "
                f"correct it, or raise rejected_events (now {most:,}). The error: "
                f"{self.engine.sentence(error)}",
                retryable=False,
            )


def check_parameters(function: Callable[..., object], parameters: Mapping[str, object]) -> None:
    """Check that a function can be called with the events and these keyword arguments. Raises
    InvalidInput."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some callables written in C do not say what they take
        return
    try:
        signature.bind(None, **parameters)
    except TypeError as error:
        raise InvalidInput(
            "argument_invalid",
            f"the function {getattr(function, '__name__', function)}{signature} can't be called "
            f"with the events and the parameters {sorted(parameters)}: {error}; give a parameter "
            "for each argument after the first one that has no default.",
        ) from None


def _unknown(batch: OpenBatch[Frame], error: Exception) -> str:
    """Return an explanation for a column that was not found, or nothing."""
    if not batch.without_columns or type(error).__name__ != "AnalysisException":
        return ""
    return (
        f" ({', '.join(batch.without_columns)} never had an event, so its columns are not known "
        "yet: look at the DataFrame's columns first, or "
        f"{do('update_stream', stream=batch.without_columns[0], more_columns='COLUMN TYPE')})"
    )
