"""Consumers: a reader that reads batch after batch and publishes what a function makes of them.

Exactly once: the output to Weir streams and the positions are one Postgres transaction; Parquet is
written to a folder per attempt, and the commit records which attempt counts.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pyspark.sql import DataFrame
from sqlalchemy import Connection

from weir.controller.locks import read_stream
from weir.controller.reads import plan_of_bounds
from weir.controller.staged import Staged
from weir.controller.transactions import Attempt, Committed, abort, ping
from weir.errors import Fenced, InvalidInput, InvariantViolation, Truncated
from weir.names import stream_name
from weir.reader_groups.batches import Batch, check_held, commit_batch
from weir.reader_groups.budget import Budget
from weir.reader_groups.groups import group_streams, group_tails
from weir.reader_groups.outputs import write_manifest
from weir.reader_groups.readers import join, leave, renew
from weir.reader_groups.turns import next_batch
from weir.spark.append import Appender
from weir.spark.progress import watched
from weir.spark.read import frame_of
from weir.warehouse import below_root, spark_path

Function = Callable[[Any], "DataFrame | dict[str, DataFrame]"]


@dataclass(frozen=True)
class Output:
    """Where results go: `stream:scope/stream`, or `parquet:folder` below an output root."""

    kind: str
    name: str
    root: str = ""
    path: str = ""

    @classmethod
    def parse(cls, text: str, roots: Sequence[str]) -> "Output":
        """Raises InvalidInput for another kind, a bad name or a path outside the roots."""
        kind, _, name = text.partition(":")
        if kind == "stream":
            return cls(kind, str(stream_name(name, reserved=False)))
        if kind == "parquet":
            root, path = below_root(name, roots, "output path")
            return cls(kind, name, root, path)
        raise InvalidInput(f"output {text!r} must begin with stream: or parquet:.")


@dataclass(frozen=True)
class Consumer:
    """A reader of a group and what it does with the events."""

    appender: Appender
    group: str
    reader_id: str
    function: Function
    outputs: tuple[Output, ...]
    order: str = "segment"
    expected_readers: int = 1

    def __post_init__(self) -> None:
        names = [output.name for output in self.outputs]
        places = {(o.kind, o.root, o.path or o.name) for o in self.outputs}
        if len(set(names)) < len(names) or len(places) < len(names):
            raise InvalidInput(f"an output is named twice ({', '.join(names)}); name each once.")

    def run(self) -> dict[str, Any]:
        """Read up to the tail as it is now, batch after batch; returns what was done.

        What other readers have of it is waited for, and taken over if they die.
        """
        app = self.appender
        lease = app.settings.reader_lease
        app.database.transaction(self._check_outputs)
        token = join(app.database, self.group, self.reader_id, lease)
        batches: list[dict[str, Any]] = []
        opened: list[Attempt] = []
        try:
            until = app.database.transaction(lambda c: group_tails(c, self.group))
            self._write_manifests()
            with app.database.keep_alive(
                lambda c: self._renew(c, token, opened),
                every=lease / 3,
            ) as alive:
                while (
                    batch := next_batch(
                        app.database, self.group, self.reader_id, token, lease=lease,
                        budget=Budget.of(app.settings), until=until,
                        expected_readers=self.expected_readers,
                    )
                ) is not None:  # fmt: skip
                    batches.append(self._run_batch(batch, opened))
                    if isinstance(alive.lost, Fenced):
                        raise alive.lost
        finally:
            with contextlib.suppress(Exception):  # the lease runs out by itself
                leave(app.database, self.group, self.reader_id, token, lease)
        return {
            "reader_group": self.group,
            "batches": batches,
            "events": sum(batch["events"] for batch in batches),
        }

    def _check_outputs(self, connection: Connection) -> None:
        """Raises NotFound for an output stream, before a batch is opened for it."""
        for output in self.outputs:
            if output.kind == "stream":
                read_stream(connection, stream_name(output.name))

    def _renew(self, connection: Connection, token: int, opened: list[Attempt]) -> None:
        settings = self.appender.settings
        renew(connection, self.group, self.reader_id, token, settings.reader_lease)
        for attempt in list(opened):  # the other thread may add to it meanwhile
            # One that is just being committed is not open any more: its commit decides.
            with contextlib.suppress(Fenced):
                ping(connection, attempt, settings.transaction_lease, settings.transaction_max)

    def _run_batch(self, batch: Batch, opened: list[Attempt]) -> dict[str, Any]:
        app = self.appender
        app.say(
            f"batch {batch.batch_id} of {self.group}: {batch.events:,} events of "
            f"{len(batch.bounds)} segments, attempt {batch.attempt}"
        )
        lost: dict[int, int] = {}
        events = self._events(batch, lost)
        staged: list[Staged] = []
        published: list[dict[str, Any]] = []
        kept: list[DataFrame] = []
        try:
            for output, frame in self._results(events, kept):
                if output.kind == "stream":
                    staged += self._stage(batch, output, frame, opened)
                else:
                    published.append(self._write_parquet(batch, output, frame))
            committed = commit_batch(
                app.database, batch, lease=app.settings.reader_lease, staged=staged,
                outputs=published, lost=lost,
            )  # fmt: skip
        except Exception:
            for attempt in opened:
                abort(app.database, attempt)
            raise
        finally:
            opened.clear()
            for frame in kept:
                frame.unpersist()
        self._write_manifests()
        report = {
            "batch": batch.batch_id,
            "attempt": batch.attempt,
            "events": batch.events,
            "streams": [one.report() for one in committed],
            "parquet": [one["path"] for one in published],
        }
        app.say(f"batch {batch.batch_id} of {self.group} committed")
        return report

    def _events(self, batch: Batch, lost: dict[int, int]) -> dict[str, DataFrame]:
        """Per stream of the group the events between the batch's bounds.

        Events that were truncated after the batch was opened are counted in `lost`, if the group
        skips gaps; else Truncated is raised.
        """
        app = self.appender
        frames = {}
        for stream_id, name in app.database.transaction(lambda c: group_streams(c, self.group)):
            bounds = [
                (b.segment_id, b.start, b.end)
                for b in batch.bounds
                if b.stream_id == stream_id and b.end > b.start
            ]
            slices, fields = app.database.transaction(
                partial(plan_of_bounds, stream_id=stream_id, bounds=bounds)
            )
            found = sum(s.end_row - s.first_row for s in slices)
            wanted = sum(end - start for _, start, end in bounds)
            if found != wanted:
                lost[stream_id] = wanted - found
                gap = (
                    f"{wanted - found} of {wanted} events of stream {name} in batch "
                    f"{batch.batch_id} of group {self.group} were truncated after it was opened"
                )
                if batch.on_gap == "fail":
                    raise Truncated(
                        f"{gap}; create the group with on_gap=skip to go on without them."
                    )
                app.say(gap)
            frames[name] = frame_of(
                app.spark, app.settings.warehouse, stream_id, slices, fields,
                order=self.order,
            )  # fmt: skip
        return frames

    def _results(
        self, events: dict[str, DataFrame], kept: list[DataFrame]
    ) -> list[tuple[Output, DataFrame]]:
        """What the function makes of the events, per output; evaluated once for all outputs."""
        several = len(self.outputs) > 1
        given = {name: frame.persist() if several else frame for name, frame in events.items()}
        if several:
            kept += given.values()
        result = self.function(next(iter(given.values())) if len(given) == 1 else given)
        if isinstance(result, DataFrame):
            if several:
                kept.append(result.persist())
            return [(output, result) for output in self.outputs]
        names = {output.name for output in self.outputs}
        if not (isinstance(result, dict) and set(result) == names
                and all(isinstance(frame, DataFrame) for frame in result.values())):  # fmt: skip
            got: Any = type(result).__name__
            if isinstance(result, dict):
                got = {str(name): type(frame).__name__ for name, frame in result.items()}
            raise InvalidInput(
                f"the function returned {got}; it must return a DataFrame, or a dictionary with "
                f"one for each of {sorted(names)}."
            )
        return [(output, result[output.name]) for output in self.outputs]

    def _stage(
        self, batch: Batch, output: Output, frame: DataFrame, opened: list[Attempt]
    ) -> list[Staged]:
        attempt = self.appender.begin_frame(
            stream_name(output.name),
            f"group {self.group}",
            batch.identity,
            guard=partial(check_held, batch=batch),
        )
        if isinstance(attempt, Committed):  # both are one transaction, so this can't be
            raise InvariantViolation(
                f"the output of batch {batch.batch_id} to {output.name} is committed, but the "
                "batch is not."
            )
        opened.append(attempt)
        staged = self.appender.stage_frame(attempt, frame)
        opened += [one.attempt for one in staged[1:]]
        return staged

    def _write_parquet(self, batch: Batch, output: Output, frame: DataFrame) -> dict[str, Any]:
        folder = f"{output.path}/group={self.group}/batch={batch.identity}/attempt={batch.attempt}/"
        with watched(self.appender.spark, f"writing {output.name}", self.appender.say):
            frame.write.mode("overwrite").parquet(spark_path(output.root, folder))
        return {"kind": "parquet", "output": output.name, "root": output.root, "path": folder}

    def _write_manifests(self) -> None:
        for output in self.outputs:
            if output.kind == "parquet":
                write_manifest(
                    self.appender.database, self.group, output.name, output.root, output.path
                )
