"""What a person does to a group, at random: each with what must come of it."""

import json
from collections.abc import Callable
from datetime import datetime
from random import Random
from typing import Any

import pytest

from tests.controller.driver import Driver
from tests.controller.model import Cut, as_json
from tests.reader_groups.driver import GroupDriver, Out
from tests.reader_groups.model import Cuts, Position
from tests.world.groups import Group
from tests.world.streams import unique
from weir.database.connection import Database
from weir.errors import Conflict, InvalidInput, NotFound, Truncated, WeirError
from weir.model.segment import segment_name
from weir.reader_groups.checkpoints.lifecycle import cancel_checkpoint, checkpoint
from weir.reader_groups.checkpoints.periodic import settle_all
from weir.reader_groups.groups.lifecycle import (
    create_reader_group,
    delete_reader_group,
    fork_reader_group,
)
from weir.reader_groups.groups.readers import reader_offline
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.groups.update import update_reader_group

REFUSED = object()
StartingPoint = tuple[str, Cuts | type[WeirError]]  # as it is written, and what it means


class Operator:
    """Somebody at the forms, who remembers at what times the tails were where."""

    def __init__(self, database: Database, drivers: list[Driver]) -> None:
        self.database = database
        self.drivers = {driver.lane.stream_id: driver for driver in drivers}
        self._times: list[tuple[datetime, Cuts]] = []

    def look_at_the_clock(self) -> None:
        driver = next(iter(self.drivers.values()))
        now = driver.lane.value("SELECT clock_timestamp()")
        self._times.append((now, {s: d.model.tail() for s, d in self.drivers.items()}))

    # Starting points.

    def starting_point(self, model: Any, random: Random) -> StartingPoint:
        """Return a random starting point in the streams of a group: as it is written, and the cuts
        that it means."""
        streams = {s: self.drivers[s].model for s in model.cuts}
        kind = random.choice(["head", "tail", "cut", "time", "checkpoint", "checkpoint"])
        if kind == "time" and self._times:
            at, tails = random.choice(self._times)
            here = {s: stream.join(tails[s], stream.head) for s, stream in streams.items()}
            lost = any(self._lost(s, tails[s]) for s in streams)
            return f"time {at.isoformat()}", Truncated if lost else here
        if kind == "checkpoint" and model.checkpoints:
            name, one = random.choice(list(model.checkpoints.items()))
            known = one.state == "complete" and one.cuts.keys() >= streams.keys()
            point = {s: one.cuts[s] for s in streams} if known else InvalidInput
            return f"checkpoint {name}", point
        if kind == "cut":
            cuts = {s: stream.frontier(random, stream.head) for s, stream in streams.items()}
            return self._written(cuts), cuts
        if kind == "tail":
            return kind, {s: stream.tail() for s, stream in streams.items()}
        return "head", {s: dict(stream.head) for s, stream in streams.items()}

    def _written(self, cuts: Cuts) -> str:
        return json.dumps({str(self.drivers[s].lane.name): as_json(c) for s, c in cuts.items()})

    def _refusal(self, cuts: Cuts | type[WeirError]) -> type[WeirError] | None:
        """Return the error with which nobody can begin at these cuts; None if somebody can."""
        if not isinstance(cuts, dict):
            return cuts
        return Truncated if any(self._lost(s, cut) for s, cut in cuts.items()) else None

    def _lost(self, stream_id: int, cut: Cut) -> int:
        """Return how many events after a cut were truncated."""
        model = self.drivers[stream_id].model
        return model.size_till(model.join(cut, model.head))[0] - model.size_till(cut)[0]

    # What moves a group.

    def reset(self, group: GroupDriver, random: Random) -> None:
        model = group.model
        point, cuts = self.starting_point(model, random)
        if random.random() < 0.2:
            point, cuts = "start", dict(model.starts)
        allow = random.random() < 0.7
        refusal = self._refusal(cuts)
        if refusal is None and isinstance(cuts, dict) and not allow:
            forth = all(model.streams[s].behind(model.cuts[s], cuts[s]) for s in cuts)
            refusal = None if forth else Conflict

        def asked() -> Any:
            return reset_reader_group(
                self.database, group.group.name, point, allow_repeat=allow, allow_loss=True,
                request_id=unique("reset"),
            )  # fmt: skip

        if ask(group, refusal, asked) is REFUSED:
            return
        assert isinstance(cuts, dict)
        group.ghosts += group.processes.values()
        group.processes.clear()
        model.reset(cuts)

    def fork(self, group: GroupDriver, name: str, random: Random, out: Out) -> GroupDriver | None:
        """Fork a group at a random starting point, or at its position. Return the new group;
        None if it was refused."""
        point, cuts = self.starting_point(group.model, random)
        if random.random() < 0.3:
            point, cuts = "", dict(group.model.cuts)
        subscriber = random.random() < 0.5

        def asked() -> Any:
            return fork_reader_group(
                self.database, group.group.name, name, at=point, subscriber=subscriber,
                allow_loss=True, request_id=unique("fork"),
            )  # fmt: skip

        if ask(group, self._refusal(cuts), asked) is REFUSED:
            return None
        assert isinstance(cuts, dict)
        lanes = tuple(self.drivers[s].lane for s in cuts)
        return GroupDriver(
            Group(self.database, name, lanes), list(self.drivers.values()), cuts, out,
            on_gap=group.model.on_gap, subscriber=subscriber,
        )  # fmt: skip

    def delete(self, group: GroupDriver) -> None:
        """Delete a group, and check that its readers are told so."""
        request = unique("delete")
        for _ in range(2):
            delete_reader_group(self.database, group.group.name, request_id=request)
        for process in [*group.processes.values(), *group.ghosts]:
            with pytest.raises(NotFound):
                process.reader.open()
            if process.batch is not None:
                with pytest.raises(NotFound):
                    process.reader.commit(process.batch)

    def offline(self, group: GroupDriver, random: Random) -> None:
        """Take a reader offline, without a position or at one in its batch."""
        model = group.model
        if not model.readers:
            return
        name = random.choice(sorted(model.readers))
        mine = [i for i, batch in model.open.items() if batch.reader == name]
        position: Position | None = None
        refusal: type[WeirError] | None = None
        if random.random() < 0.7:
            position = _within(group, mine, random)
            read = model.within(model.batches[mine[0]], position) if mine else None
            refusal = None if read is not None else InvalidInput
        written: dict[str, dict[str, int]] = {}
        for (s, segment), offset in (position or {}).items():
            written.setdefault(str(self.drivers[s].lane.name), {})[segment_name(segment)] = offset

        def asked() -> Any:
            return reader_offline(
                self.database, group.group.name, name,
                "" if position is None else json.dumps(written), request_id=unique("offline"),
            )  # fmt: skip

        if ask(group, refusal, asked) is REFUSED:
            return
        model.offline(name)
        if position is not None:
            model.give_up(mine[0], position)
        model.release(only=name)

    # What changes it.

    def update(self, group: GroupDriver, random: Random) -> None:
        model = group.model
        changes: dict[str, Any] = {}
        refusal: type[WeirError] | None = None
        if random.random() < 0.3:
            changes["generation"] = model.generation - random.randint(0, 1)
        if random.random() < 0.5:
            changes["on_gap"] = random.choice(["skip", "fail"])
        if random.random() < 0.5:
            changes["subscriber"] = random.random() < 0.6
        if random.random() < 0.3:
            changes["max_outstanding"] = random.randint(0, 3)
        subscribes = changes.get("subscriber") and not model.subscriber
        if changes.get("generation", model.generation) != model.generation:
            refusal = Conflict
        elif changes.get("max_outstanding") == 0:
            refusal = InvalidInput
        elif subscribes:
            refusal = self._refusal(model.cuts)
        asked = self._updating(group, **changes)
        if ask(group, refusal, asked) is REFUSED:
            return
        model.generation += 1
        model.on_gap = changes.get("on_gap", model.on_gap)
        model.max_outstanding = changes.get("max_outstanding", model.max_outstanding)
        model.subscriber = changes.get("subscriber", model.subscriber)
        model.released = {**model.cuts, **model.released} if model.subscriber else {}

    def _updating(self, group: GroupDriver, **changes: Any) -> Callable[[], Any]:
        return lambda: update_reader_group(
            self.database,
            group.group.name,
            allow_loss=True,
            request_id=unique("update"),
            **changes,
        )

    def change_streams(self, group: GroupDriver, random: Random) -> None:
        """Stop reading the second stream, or begin again."""
        model = group.model
        one, other = self.drivers
        names = [self.drivers[one].lane.name]
        if other in model.cuts:
            held = any(other in batch.streams for batch in model.open.values())
            leaving = self._updating(group, streams=names)
            if ask(group, Conflict if held else None, leaving) is not REFUSED:
                model.generation += 1
                model.leave(other)
                group.group.lanes = (self.drivers[one].lane,)
            return
        start = random.choice(["head", "tail"])
        names.append(self.drivers[other].lane.name)
        self._updating(group, streams=names, start=start)()
        model.generation += 1
        group.group.lanes = tuple(driver.lane for driver in self.drivers.values())
        stream = self.drivers[other].model
        model.enter(other, stream, dict(stream.head) if start == "head" else stream.tail())

    # Checkpoints.

    def checkpoint(self, group: GroupDriver, random: Random) -> None:
        model = group.model
        barrier, late = random.random() < 0.6, random.random() < 0.2
        name = unique("checkpoint") if random.random() < 0.7 else None
        refusal: type[WeirError] | None = None
        if name is not None and model.checkpoints and random.random() < 0.1:
            name, refusal = random.choice(list(model.checkpoints)), Conflict
        waits = barrier and bool(model.open)
        waiting = [n for n in model.outstanding if model.fate(model.checkpoints[n]) == "waiting"]
        if waits and len(waiting) >= model.max_outstanding:
            refusal = Conflict
        patience = 0.0 if late else 3600.0

        def asked() -> Any:
            return checkpoint(
                self.database, group.group.name, name=name, barrier=barrier, patience=patience
            )

        made = ask(group, refusal, asked)
        if made is REFUSED:
            return
        if name is None and not waits and model.cuts == model.last():
            assert made is None
            return
        assert made["released"] == (model.subscriber and not waits)
        model.checkpoint(made["checkpoint"], barrier=barrier, late=late)

    def cancel(self, group: GroupDriver, random: Random) -> None:
        model = group.model
        name = random.choice(model.outstanding or [*model.checkpoints, "unknown"])
        state = model.checkpoints[name].state if name in model.checkpoints else None
        refusal = {"waiting": None, None: NotFound}.get(state, Conflict)

        def asked() -> Any:
            return cancel_checkpoint(
                self.database, group.group.name, name, request_id=unique("cancel")
            )

        if ask(group, refusal, asked) is not REFUSED:
            model.checkpoints[name].state = "cancelled"

    def settle(self, groups: list[GroupDriver]) -> None:
        settle_all(self.database)
        for group in groups:
            group.model.settle()

    # Mistakes.

    def mistake(self, group: GroupDriver, random: Random) -> None:
        """Ask for something that is refused whatever the group is like."""
        name = group.group.name
        given: dict[str, Any] = {"request_id": unique("mistake")}
        streams = [self.drivers[s].lane.name for s in group.model.cuts]
        error, asked = random.choice(
            [
                (Conflict, lambda: create_reader_group(self.database, name, streams, **given)),
                (
                    Conflict,
                    lambda: fork_reader_group(self.database, name, name, at="tail", **given),
                ),
                (NotFound, lambda: fork_reader_group(self.database, "no-one", name, **given)),
                (
                    NotFound,
                    lambda: reset_reader_group(self.database, name, "checkpoint x", **given),
                ),
                (InvalidInput, lambda: reset_reader_group(self.database, name, "0.0=1", **given)),
                (NotFound, lambda: reader_offline(self.database, name, "nobody", **given)),
                (NotFound, lambda: delete_reader_group(self.database, "no-one", **given)),
                (InvalidInput, self._updating(group, streams=[])),
                (InvalidInput, self._updating(group, on_gap="perhaps")),
            ]
        )
        ask(group, error, asked)


def _within(group: GroupDriver, mine: list[int], random: Random) -> Position:
    """Return a position, mostly within a batch: what is read of some of its segments, in their
    order."""
    bounds = sorted(group.model.batches[mine[0]].bounds, key=lambda b: b.segment_id) if mine else []
    position = {
        (b.stream_id, b.segment_id): random.choice([b.end, b.end, random.randint(b.start, b.end)])
        for b in bounds[: random.randint(0, len(bounds))]
    }
    if not position or random.random() < 0.1:
        s = next(iter(group.model.cuts))
        position[s, random.choice(list(group.model.streams[s].segments))] = random.randint(0, 9)
    return position


def ask(group: GroupDriver, refusal: type[WeirError] | None, asked: Callable[[], Any]) -> Any:
    """Return what comes back. If it must be a refusal, check that it changes nothing, and return
    REFUSED."""
    if refusal is None:
        return asked()
    before = group.everything()
    with pytest.raises(refusal):
        asked()
    assert group.everything() == before
    return REFUSED
