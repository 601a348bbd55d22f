"""Random schedules: what jobs, people and time do to a stream, its groups and its store, in any
order."""

from contextlib import suppress
from random import Random
from typing import Any

from tests.audit.world import merge, read_some, split
from tests.world.adjunct import Store
from tests.world.groups import Group, Reader
from tests.world.streams import Lane, unique
from weir.adjunct.builds import Build
from weir.compaction.pack import pack
from weir.database.connection import Database
from weir.errors import WeirError
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.groups.lifecycle import delete_reader_group, fork_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.capture import capture
from weir.retention.prune import prune
from weir.retention.run import retain

OPERATIONS = {
    "append": 6, "read": 6, "fail": 1, "die": 1, "checkpoint": 3, "retain": 3, "split": 1,
    "merge": 1, "truncate": 1, "reset": 1, "join": 1, "fork": 1, "delete": 1, "prune": 1,
    "build": 1, "switch": 1,
}  # fmt: skip


class Walk:
    """One stream with its groups, and what happens to it."""

    def __init__(self, database: Database, random: Random, outs: list[Lane]) -> None:
        self.database, self.random, self.outs = database, random, outs
        policy: dict[str, Any] = {"retention": "consumed"}
        if random.random() < 0.2:
            policy = {"retention": "size", "retain_max_bytes": random.choice([50, 200])}
        self.lane = Lane.made(database, segments=random.choice([1, 1, 2]), **policy)
        self.groups: list[Group] = []
        self.store: Store | None = None
        self.done: list[str] = []

    def play(self, steps: int) -> None:
        for _ in range(steps):
            [what] = self.random.choices(list(OPERATIONS), list(OPERATIONS.values()))
            self.done.append(what)
            with suppress(WeirError):  # what is refused changes nothing
                getattr(self, what)()

    def append(self) -> None:
        active = self.lane.active()
        some = self.random.sample(active, self.random.randint(1, min(2, len(active))))
        self.lane.append({name: [self.random.randint(1, 6)] * self.random.choice([1, 1, 2])
                          for name in some})  # fmt: skip

    def group(self) -> Group:
        if not self.groups or (self.random.random() < 0.15 and len(self.groups) < 3):
            self.join()
        return self.random.choice(self.groups)

    def join(self) -> None:
        self.groups.append(Group.made(
            self.lane, subscriber=self.random.random() < 0.8,
            on_gap=self.random.choice(["skip", "skip", "fail"]),
            start=self.random.choice(["head", "head", "tail"]),
            end=self.random.choice(["", "", "", "tail"]),
        ))  # fmt: skip

    def read(self) -> None:
        out = self.random.choice([*self.outs, None, None])
        read_some(self.group(), self.random.choice([2, 5, 10**9]), out)

    def opened(self) -> tuple[Reader, Any]:
        reader = self.group().reader(self.random.choice(["a", "b"]))
        return reader, reader.open(self.random.choice([4, 8]))

    def fail(self) -> None:
        _, batch = self.opened()
        if batch is not None and batch.events > 1:
            split_batch(self.database, batch, "it failed")

    def die(self) -> None:
        reader, _ = self.opened()
        reader.group.lapse("a", "b")

    def checkpoint(self) -> None:
        self.group().checkpoint(unique("c"))

    def retain(self) -> None:
        if self.random.random() < 0.5:
            capture(self.database)
        retain(self.database, [self.lane.name])

    def split(self) -> None:
        split(self.lane, self.random.choice(self.lane.active()))

    def merge(self) -> None:
        active = self.lane.active()
        if len(active) > 1:
            first = self.random.randrange(len(active) - 1)
            merge(self.lane, *active[first : first + 2])

    def truncate(self) -> None:
        cut = self.random.choice([self.lane.tail, self.group().cut])()
        self.lane.truncate(", ".join(f"{name}={at}" for name, at in cut.items()))

    def reset(self) -> None:
        reset_reader_group(
            self.database, self.group().name, self.random.choice(["start", "head", "tail"]),
            allow_repeat=True, allow_loss=True, allow_truncated=True, request_id=unique("reset"),
        )  # fmt: skip

    def fork(self) -> None:
        name = unique("fork")
        fork_reader_group(
            self.database, self.group().name, name, allow_loss=True, allow_truncated=True,
            request_id=unique("fork"),
        )  # fmt: skip
        self.groups.append(Group(self.database, name, (self.lane,)))

    def delete(self) -> None:
        group = self.group()
        delete_reader_group(self.database, group.name, request_id=unique("delete"))
        self.groups.remove(group)

    def prune(self) -> None:
        pack(self.database, 0, 1e9, most=4)
        prune(self.database, 0)

    def build(self) -> None:
        self.store = self.store or Store.made(self.lane, on_gap="rebuild")
        build = self.store.begin()
        if isinstance(build, Build):
            self.store.publish(build)

    def switch(self) -> None:
        group = self.group()
        group.update(subscriber=self.random.random() < 0.5, allow_loss=True, allow_truncated=True)
