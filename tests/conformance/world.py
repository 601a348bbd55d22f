"""A case's history as a stream in the database."""

from typing import Any

from sqlalchemy import Connection, text

from tests.conformance.cases import FILE
from tests.world.streams import Lane, run
from weir.controller import queries
from weir.controller.epochs import next_epoch
from weir.controller.locks import lock_stream
from weir.database.connection import Database
from weir.model.key_space import KeyRange, splits_and_merges
from weir.model.segment import Segment, segment_id
from weir.queries.controller import epochs


def ours(name: str) -> str:
    """Return a name such as `5@1` as Weir writes it."""
    return name.replace("@", ".")


def theirs(name: str) -> str:
    return name.replace(".", "@")


def cut_of(offsets: dict[str, int]) -> queries.Cut:
    return {ours(name): "future" if offset < 0 else offset for name, offset in offsets.items()}


class World:
    """One stream, with the segments, epochs and sizes of a case's history."""

    def __init__(self, database: Database, setup: dict[str, Any]) -> None:
        history = FILE["histories"].get(str(setup.get("history")).split(" ")[0], setup)
        self.lane = Lane.made(database, segments=history.get("initial_segments", 1))
        self.database, self.name = database, self.lane.name
        self.sizes: dict[str, int] = {}
        for operation in [*history.get("ops", []), setup.get("then_scale")]:
            if operation is not None:
                self.fill_and_apply(operation)
        if "create_time" in history and "then_scale" not in setup:
            self._set_times([history["create_time"], *(o["time"] for o in history["ops"])])

    def ask(self, question: Any, *given: Any) -> Any:
        """Ask a question of `weir.controller.queries`, and return the answer."""
        return self.database.transaction(lambda c: question(c, self.name, *given))

    def fill(self, size: int) -> None:
        """Append until each active segment has so many events."""
        tail = self.lane.tail()
        self.lane.append({name: size - n for name, n in tail.items() if size > n})

    def fill_and_apply(self, operation: dict[str, Any]) -> None:
        """Append until segments have the sizes at which the case seals them, and apply the
        operation."""
        self._fill(operation.get("sealed_sizes", {}))
        self.apply(operation)

    def _fill(self, sizes: dict[str, int]) -> None:
        now = self.lane.tail()
        wanted = {ours(name): size for name, size in sizes.items()}
        if more := {name: size - now[name] for name, size in wanted.items() if name in now}:
            self.lane.append(more)

    def apply(self, operation: dict[str, Any]) -> None:
        if operation.get("op") == "roll":
            self.database.transaction(lambda c: self._roll(c, operation))
            return
        ranges = [KeyRange(*r) for r in operation["new"]]
        created = self.lane.scale(*map(ours, operation["seal"]), ranges=ranges)
        assert created == [ours(n) for n in operation.get("creates", map(theirs, created))]

    def _roll(self, connection: Connection, operation: dict[str, Any]) -> None:
        """Make a roll as Pravega makes one. Weir would not need one for a mere re-creation."""
        stream = lock_stream(connection, self.name)
        before = epochs.active_segments(connection, stream_id=stream.stream_id)
        began = operation["txn_epoch"]
        copied = epochs.segments_at(connection, stream_id=stream.stream_id, epoch=began)
        origin, now = self._references(connection, began, stream.current_epoch)
        sealed = before
        for i, (originals, reference) in enumerate([(copied, origin), (before, now)], 1):
            epoch = stream.current_epoch + i
            made = [Segment(segment_id(s.number, epoch), s[1], s[2]) for s in originals]
            next_epoch(
                connection, stream, epoch=epoch, reference_epoch=reference,
                seal=[s.segment_id for s in sealed], create=made,
                splits_and_merges=splits_and_merges(
                    [KeyRange(s[1], s[2]) for s in sealed], [KeyRange(s[1], s[2]) for s in made]
                ),
                cause="roll", reason="the case says so", request_id="case",
                next_segment_number=stream.next_segment_number,
            )  # fmt: skip
            sealed = made
            sizes = operation.get("sealed_sizes", {})
            for segment in made if i == 1 else []:
                size = sizes.get(theirs(segment.name), 0)
                connection.execute(
                    text(
                        """UPDATE segment_tail SET tail_offset = :n, tail_bytes = 10 * :n
                        WHERE stream_id = :s AND segment_id = :id"""
                    ),
                    {"s": stream.stream_id, "id": segment.segment_id, "n": size},
                )

    def _references(self, connection: Connection, *epochs: int) -> list[int]:
        rows = connection.execute(
            text("SELECT epoch, reference_epoch FROM epoch WHERE stream_id = :s"),
            {"s": self.lane.stream_id},
        )
        known = {row.epoch: row.reference_epoch for row in rows}
        return [known[epoch] for epoch in epochs]

    def _set_times(self, times: list[int]) -> None:
        """Set the epochs to the times of the case, of which a roll takes two."""
        epochs = self.lane.epochs()
        clocks: list[int] = []
        for epoch in epochs:
            rolled = epoch.cause == "roll" and epochs[epoch.epoch - 1].cause == "roll"
            clocks.append(clocks[-1] + 1 if rolled else times.pop(0))
        for epoch, clock in zip(epochs, clocks, strict=True):
            run(
                self.database,
                "UPDATE epoch SET created_at = :t WHERE stream_id = :s AND epoch = :e",
                s=self.lane.stream_id, e=epoch.epoch, t=clock,
            )  # fmt: skip
