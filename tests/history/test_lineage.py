"""Lineage, beside a model that knows every run: what it read and what it wrote."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest

from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.groups import Group, spans
from tests.world.streams import Lane, rows, staged, unique
from weir.controller.commit import commit
from weir.controller.streams import create_in
from weir.database.connection import Database
from weir.history.job_runs import RunId, record_end, record_start
from weir.history.lineage import lineage_of
from weir.kernel.attempt import Staged
from weir.model.stream_configuration import Configuration
from weir.queries.history.lineage import Step
from weir.reader_groups.batches.history import prune_batches
from weir.reader_groups.batches.lifecycle import Function
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.groups.reset import reset_reader_group

Range = tuple[str, str, int, int]  # stream, segment, from, to
Thing = tuple[str, str, str, str | None, int | None, int | None]


@dataclass(eq=False)
class Unit:
    """What one commit read and wrote."""

    run: str
    reads: list[Range] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    wrote: list[Range] = field(default_factory=list)
    folders: list[str] = field(default_factory=list)
    function: Function | None = None

    def things(self) -> Iterator[Thing]:
        yield from (("read", "stream", *one) for one in self.reads)
        yield from (("read", "file", path, None, None, None) for path in self.files)
        yield from (("wrote", "stream", *one) for one in self.wrote)
        yield from (("wrote", "parquet", path, None, None, None) for path in self.folders)


def meet(one: Iterable[Range], other: Iterable[Range]) -> bool:
    return any(a[:2] == b[:2] and a[2] < b[3] and b[2] < a[3] for a in one for b in other)


class World:
    """Streams in a row; groups read some of them and write to later ones."""

    def __init__(self, database: Database, random: Random, lanes: int = 4) -> None:
        self.database, self.random = database, random
        self.lanes = [Lane.made(database) for _ in range(lanes)]
        self.units: list[Unit] = []
        self.groups: list[Group] = []
        for i in range(1, lanes):
            inputs = random.sample(self.lanes[:i], min(i, random.choice([1, 1, 2])))
            self.groups.append(Group.made(*inputs))

    def write(self, lane: Lane, unit: Unit, batch: str, writer: str) -> Staged:
        attempt = lane.opened(batch, writer=writer, source=unit.run, inputs=unit.files)
        chosen = self.random.sample(sorted(lane.tail()), self.random.choice([1, 2]))
        written = {name: self.random.randint(1, 30) for name in chosen}
        before = lane.tail()
        unit.wrote += [
            (str(lane.name), name, before[name], before[name] + count)
            for name, count in written.items()
        ]
        return staged(attempt, written)

    def append(self) -> None:
        unit = Unit(unique("dag/run/task"), files=[f"{unique('file')}.csv"])
        commit(self.database, self.write(self.random.choice(self.lanes), unit, unique("b"), "w"))
        self.units.append(unit)

    def consume(self) -> None:
        i = self.random.randrange(len(self.groups))
        group = self.groups[i]
        reader = group.reader(unique("dag/run/consume"))
        while (batch := reader.open(self.random.choice([5, 40, 10_000]))) is not None:
            unit = Unit(reader.reader_id)
            names = {lane.stream_id: str(lane.name) for lane in self.lanes}
            for bound, (segment, first, past) in zip(
                [b for b in batch.bounds if b.end > b.start], spans(batch), strict=True
            ):
                unit.reads.append((names[bound.stream_id], segment, first, past))
            outputs: list[dict[str, str]] = []
            appends: list[Staged] = []
            if self.random.random() < 0.7:
                target = self.random.choice(self.lanes[i + 1 :])
                if str(target.name) not in {one[0] for one in unit.reads}:
                    appends.append(self.write(target, unit, batch.identity, f"group {group.name}"))
            if self.random.random() < 0.3:
                unit.folders.append(f"root/{unique('folder')}")
                outputs.append({
                    "kind": "parquet", "output": "o", "root": "root",
                    "path": unit.folders[0].removeprefix("root/"),
                })  # fmt: skip
            unit.function = Function(f"shop:f{i}", f"{self.random.randrange(3)}")
            reader.commit(batch, appends, outputs=outputs, function=unit.function)
            self.units.append(unit)
            if self.random.random() < 0.5:
                break
        reader.leave()

    def go_on(self) -> None:
        what = self.random.random()
        if what < 0.45:
            self.append()
        elif what < 0.9:
            self.consume()
        elif what < 0.95:
            lane = self.random.choice(self.lanes)
            lane.scale(self.random.choice(sorted(lane.tail())), parts=2)
        else:
            group = self.random.choice(self.groups)
            reset_reader_group(
                self.database, group.name, "start", allow_repeat=True, request_id=unique("reset")
            )

    def expected(self, first: list[Unit], step: int, up: bool) -> dict[Unit, int]:
        """The units on the way, each with the fewest steps to it."""
        found: dict[Unit, int] = {}
        front = first
        while front:
            found |= dict.fromkeys(front, step)
            step += 1
            front = [
                one for one in self.units
                if one not in found and any(
                    meet(one.wrote, u.reads) if up else meet(one.reads, u.wrote) for u in front)
            ]  # fmt: skip
        return found


def lineage(database: Database, *asked: Any, **more: Any) -> list[Step]:
    """Ask where events come from, or go to, in a transaction of its own."""
    return database.transaction(lambda c: lineage_of(c, *asked, **more))


def shown(steps: Iterable[Step]) -> set[object]:
    return {(s.step, s.run, s.function, s.function_version, *_thing(s)) for s in steps}


def _thing(step: Step) -> tuple[object, ...]:
    return step.side, step.kind, step.name, step.segment, step.from_offset, step.to_offset


def told(found: dict[Unit, int]) -> set[object]:
    return {
        (step, unit.run, *(unit.function or (None, None)), *thing)
        for unit, step in found.items()
        for thing in unit.things()
    }


@pytest.mark.random
def test_lineage_is_what_a_model_knows_that_saw_every_run(shared_database: Database) -> None:
    random = random_for("lineage")
    for _ in range(cases(5)):
        world = World(shared_database, random)
        for _ in range(60):
            world.go_on()
        for _ in range(15):
            unit = random.choice([one for one in world.units if one.wrote])
            stream, segment, first, past = random.choice(unit.wrote)
            asked = (stream, segment, first, random.randint(first + 1, past))
            for up in (True, False):
                start = [
                    one for one in world.units if meet(one.wrote if up else one.reads, [asked])
                ]
                found = world.expected(start, 1, up)
                for depth in (None, 2):
                    direction = "up" if up else "down"
                    got = lineage(shared_database, asked[0], direction, depth, *asked[1:])
                    near = {u: s for u, s in found.items() if depth is None or s <= depth}
                    assert shown(got) == told(near)
        consumers = [one for one in world.units if one.function]
        run = random.choice(consumers).run
        for up in (True, False):
            own = [one for one in world.units if one.run == run]
            got = lineage(shared_database, run, "up" if up else "down")
            assert shown(got) == told(world.expected(own, 0, up))


def test_lineage_ends_where_batches_were_pruned_or_their_group_was_deleted(
    database: Database,
) -> None:
    source, target = Lane.made(database), Lane.made(database)
    for old in ("pruned", "deleted"):
        source.append({"0.0": 3}, source="dag/run/append")
        group = Group.made(source)
        reader = group.reader("dag/run/consume")
        batch = reader.must_open()
        attempt = target.opened(batch.identity, writer=f"group {group.name}", source="dag/run/c")
        reader.commit(batch, [staged(attempt, {"0.0": 1})])

        def runs() -> list[str]:
            steps = lineage(database, str(target.name), segment="0.0")
            return [one.run for one in steps]

        assert "dag/run/append" in runs()
        if old == "pruned":
            database.transaction(
                lambda c: c.exec_driver_sql(
                    "UPDATE reader_batch SET ended_at = ended_at - interval '100 days'"
                )
            )
            assert prune_batches(database, 90 * 86400.0) == 1
        else:
            reader.leave()
            delete_reader_group(database, group.name, request_id="delete")
        assert "dag/run/append" not in runs()
        assert "dag/run/c" in runs()
        assert rows(database, "SELECT * FROM batch_input") == []


def test_rejected_rows_have_the_lineage_of_the_append_that_rejected_them(
    database: Database,
) -> None:
    lane = Lane.made(database)
    name, how = lane.name.rejected, Configuration(routing_key="key")
    stream_id = database.transaction(lambda c: create_in(c, name, how, 1, None, "rejected"))
    rejected = Lane(database, name, stream_id)
    main = lane.opened(inputs=["bad.csv"], source="dag/run/append")
    bad = rejected.opened(
        str(main.transaction_number),
        writer=f"rejected by {lane.stream_id}",
        source="dag/run/append",
    )
    [segment] = rejected.tail()
    commit(database, staged(main, {"0.0": 2}), staged(bad, {segment: 1}))
    for asked in (lane.name, name):
        steps = lineage(database, str(asked))
        assert [(one.side, one.kind, one.name) for one in steps] == [
            ("read", "file", "bad.csv"),
            ("wrote", "stream", str(lane.name)),
            ("wrote", "stream", str(name)),
        ]


def test_questions_about_nothing_are_refused_or_answered_with_nothing(database: Database) -> None:
    lane = Lane.made(database)
    for asked, code in (
        (("nobody/here",), "stream_not_found nobody/here"),
        ((str(lane.name), "sideways"), "argument_invalid sideways"),
        ((str(lane.name), "up", None, "7.0"), "segment_not_found 7.0"),
        ((str(lane.name), "up", None, None, 3), f"argument_missing {lane.name} segment"),
        (("a/b/c", "down", None, "0.0", None, 3), "argument_missing a/b/c stream"),
    ):
        with raises(code):
            lineage(database, *asked)
    assert lineage(database, "no/such/run") == []
    assert lineage(database, str(lane.name)) == []


@pytest.mark.parametrize("number", [1, "1", "one", 1.5, 10**30, {}, None])
def test_a_report_that_names_no_transaction_leads_to_nothing(
    database: Database, number: object
) -> None:
    lane = Lane.made(database)
    lane.append({"0.0": 1})
    task = RunId("dag", "run", "append")
    database.transaction(lambda c: record_start(c, task, "ingest", {}))
    report = {"stream": str(lane.name), "transaction_number": number}
    database.transaction(lambda c: record_end(c, task, "succeeded", report=report))
    assert bool(lineage(database, "dag/run/append")) == (str(number) == "1")
