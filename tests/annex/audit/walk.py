"""Random schedules: what jobs, people and time do to a stream, its groups and its store, in any
order."""

from contextlib import suppress
from random import Random
from typing import Any

from tests.annex.audit.world import merge, read_some, split
from tests.world.adjunct import Store
from tests.world.groups import Group, Reader, budget
from tests.world.streams import Lane, unique
from weir.adjunct.builds import Build
from weir.compaction.pack import pack
from weir.controller.seal import seal_stream
from weir.controller.transactions import abort
from weir.database.connection import Database
from weir.errors import WeirError
from weir.kernel.attempt import Attempt
from weir.model.segment import segment_name
from weir.reader_groups.batches.alignment import end_of_run
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.batches.splits import split_batch
from weir.reader_groups.batches.streaming_query import StreamingQuery
from weir.reader_groups.groups.lifecycle import delete_reader_group, fork_reader_group
from weir.reader_groups.groups.readers import reader_offline
from weir.reader_groups.groups.reset import reset_reader_group
from weir.retention.capture import capture
from weir.retention.delete_stream import delete_stream
from weir.retention.prune import prune
from weir.retention.release import release
from weir.retention.run import retain

OPERATIONS = {
    "append": 6, "read": 6, "fail": 1, "die": 1, "checkpoint": 3, "retain": 3, "split": 1,
    "merge": 1, "truncate": 1, "reset": 1, "join": 1, "fork": 1, "delete": 1, "prune": 1,
    "build": 1, "switch": 1, "begin": 1, "late": 2, "aligned": 1, "query": 2, "offline": 1,
    "streams": 1, "release": 1, "again": 0.3, "anew": 0.3,
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
        self.waiting: list[Attempt] = []
        self.queries: list[Query] = []
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
            release=self.random.choice(["automatic", "automatic", "manual"]),
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

    def delete(self) -> Group:
        group = self.group()
        delete_reader_group(self.database, group.name, request_id=unique("delete"))
        self.groups.remove(group)
        self.queries = [one for one in self.queries if one.group.name != group.name]
        return group

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

    def begin(self) -> None:
        self.waiting.append(self.lane.opened())

    def late(self) -> None:
        """Commit or end an append that was begun before others were committed."""
        if self.waiting:
            attempt = self.waiting.pop(self.random.randrange(len(self.waiting)))
            if self.random.random() < 0.3:
                abort(self.database, attempt)
            else:
                self.lane.commit(attempt, {self.random.choice(self.lane.active()): 3})

    def aligned(self) -> None:
        """Read this stream and another one up to the same clock."""
        other = self.outs[1]
        group = Group.made(
            self.lane, other, aligned=True, start="tail", subscriber=self.random.random() < 0.5
        )
        self.append()
        other.append({other.active()[0]: 2})
        until, closed = self.database.transaction(lambda c: end_of_run(c, group.name))
        reader = group.reader()
        while batch := reader.open(self.random.choice([20, 10**9]), until=until, closed=closed):
            reader.commit(batch)

    def query(self) -> None:
        """Let a streaming query plan micro-batches, which its sink has, or may have, at its end."""
        if not self.queries or self.random.random() < 0.3:
            self.join()
            self.queries.append(Query(self.groups[-1], unique("query")))
        query = self.random.choice(self.queries)
        query.run(self.random, self.random.randint(1, 3))

    def offline(self) -> None:
        """Take a reader away, from its batch as a whole or at a position in it."""
        reader, batch = self.opened()
        at = ""
        if batch is not None and self.random.random() < 0.7:
            bound = self.random.choice(batch.bounds)
            at = f"{segment_name(bound.segment_id)}={self.random.randint(bound.start, bound.end)}"
        reader_offline(
            self.database, reader.group.name, reader.reader_id, at, request_id=unique("offline")
        )

    def streams(self) -> None:
        """Let a group read another stream, too, or no longer."""
        group = self.group()
        group.update(
            streams=[self.lane.name, *self.random.choice([[], [self.outs[0].name]])],
            start=self.random.choice(["head", "tail"]), allow_loss=True, allow_truncated=True,
        )  # fmt: skip

    def release(self) -> None:
        at = self.random.choice(["position", "head", "tail"])
        release(self.database, self.group().name, at, request_id=unique("release"))

    def again(self) -> None:
        """Delete a group, and create one of the same name."""
        group = self.delete()
        made = Group.made(self.lane, name=group.name, start="head")
        self.groups.append(made)

    def anew(self) -> None:
        """Delete the stream, with what nobody has read, and create one of the same name."""
        seal_stream(self.database, self.lane.name, request_id=unique("seal"))
        delete_stream(self.database, self.lane.name, unread_too=True, request_id=unique("delete"))
        self.lane = Lane.made(
            self.database, name=str(self.lane.name), segments=2, retention="consumed"
        )
        self.groups, self.queries, self.waiting, self.store = [], [], [], None


class Query:
    """A streaming query of a group: what its checkpoint has."""

    def __init__(self, group: Group, reader_id: str) -> None:
        self.group, self.reader_id = group, reader_id
        self.committed = 0  # the last micro-batch that the checkpoint has as committed

    def run(self, random: Random, batches: int) -> None:
        """Start it, and let it run some micro-batches; then it ends, perhaps before it has told
        the group that its checkpoint has the last one."""
        reading = Reading(budget(random.choice([3, 6])))
        query = StreamingQuery(
            self.group.database, self.group.name, self.group.group_id, self.reader_id
        )
        for _ in range(batches):
            number = query.next(self.committed, reading, None, 60.0)
            if number == self.committed:
                return
            query.batch(number, reading, 60.0)
            if random.random() < 0.2:
                return  # the sink may have it, and its checkpoint has not
            if random.random() < 0.1:
                query.lost = {self.group.lanes[0].stream_id: 1}
            self.committed = number
        if random.random() < 0.5:
            query.commit(self.committed, 60.0)
