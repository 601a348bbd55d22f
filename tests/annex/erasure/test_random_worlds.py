"""Erasures in random worlds of streams, groups that copy them, and what these write: nothing of the
subject is left anywhere, every other row stays, and every group reads on, each event once."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import psycopg2
import pyarrow.parquet as pq
import pytest

import weir
from tests.annex.erasure.test_everywhere import where_it_is
from tests.chance import cases, random_for
from tests.compaction.world import EVER
from tests.conftest import TestDatabase
from tests.world.streams import rows, unique
from weir.compaction.pack import pack
from weir.compaction.run import compact
from weir.controller.rejected import make_rejected_stream
from weir.model.names import stream_name
from weir.programs.store import StreamStore
from weir.settings import Settings

Row = dict[str, Any]


class Worlds:
    """Orders by customer; `bought`, which a group makes of them by product; `people`, which another
    makes of that; files, files in folders, a table, and rejected rows."""

    def __init__(self, store: StreamStore, settings: Settings, dsn: str, random: Random) -> None:
        self.store, self.settings, self.dsn, self.random = store, settings, dsn, random
        self.next = 0
        self.orders, self.bought, self.people = (
            f"shop/{unique(name)}" for name in ("orders", "bought", "people")
        )
        self.streams = [self.orders, self.bought, self.people]
        self.customers = [unique("who") for _ in range(6)]
        self.table = unique("sold").replace("-", "_")
        self._sql(
            f"""CREATE TABLE public.{self.table} (n bigint, client text);
            GRANT SELECT, INSERT, DELETE ON public.{self.table} TO weir_publisher"""
        )
        for name, key in zip(self.streams, ("customer", "product", "person"), strict=True):
            store.create_stream(name, key, segments=random.choice([1, 2, 4]))
        rejected = str(make_rejected_stream(store.database, stream_name(self.orders)))
        self.streams.append(rejected)
        self.first, self.second = unique("first"), unique("second")
        given: dict[str, Any] = {"on_gap": "skip", "subscriber": random.random() < 0.5}
        store.create_reader_group(self.first, [self.orders], subject="client", **given)
        store.create_reader_group(self.second, [self.bought], subject="person", **given)
        self.read: dict[str, Counter[int]] = {self.first: Counter(), self.second: Counter()}

    def _sql(self, statement: str) -> list[tuple[Any, ...]]:
        connection = psycopg2.connect(self.dsn)
        with connection, connection.cursor() as cursor:
            cursor.execute(statement)
            found = cursor.fetchall() if cursor.description else []
        connection.close()
        return found

    def append(self) -> None:
        made = []
        for _ in range(self.random.randint(1, 30)):
            self.next += 1
            made.append({"customer": self.random.choice(self.customers), "n": self.next})
        self.store.append(self.orders, made)
        if self.random.random() < 0.3:
            who = self.random.choice(self.customers)
            bad = [{"row": f"{who};x", "source": "a.csv"}, {"row": "x", "text": f"no {who}"}]
            self.store.append(self.streams[-1], bad)

    def process(self) -> None:
        """Let one of the groups read some batches, and write what it makes of them."""
        group = self.random.choice([self.first, self.second])
        with self.store.reader(group, batch_events=self.random.choice([5, 40, 1000])) as reader:
            for number, batch in enumerate(reader):
                found = batch.events.to_pylist()
                self.read[group].update(one["n"] for one in found)
                if group == self.first:
                    made = [
                        {"client": one["customer"], "product": f"p{one['n'] % 5}", "n": one["n"]}
                        for one in found
                    ]
                    batch.write(f"stream:{self.bought}", made)
                    batch.write("parquet:sold", made)
                    batch.write(f"table:public.{self.table}", [
                        {"n": one["n"], "client": one["client"]} for one in made
                    ])  # fmt: skip
                else:
                    made = [{"person": one["client"], "n": one["n"]} for one in found]
                    batch.write(f"stream:{self.people}", made)
                    batch.write("parquet:persons partition_by=person", made)
                batch.commit()
                if number == self.random.randint(0, 3):
                    break

    def scale(self) -> None:
        name = self.random.choice(self.streams[:3])
        active = rows(
            self.store.database,
            """SELECT segment FROM weir.segments WHERE stream = :name AND active
            ORDER BY key_low""",
            name=name,
        )
        at = self.random.randrange(len(active))
        if len(active) > 1 and self.random.random() < 0.5:
            at = min(at, len(active) - 2)
            neighbours = [one.segment for one in active[at : at + 2]]
            self.store.scale_stream(name, neighbours, parts=1)
        else:
            self.store.scale_stream(name, [active[at].segment], parts=2)

    def truncate(self) -> None:
        group, name = self.random.choice(
            [(self.first, self.orders), (self.second, self.bought)]
        )  # fmt: skip
        self.store.truncate_stream(name, "position", reader_group=group, dry_run=False)

    def keep_files(self) -> None:
        compact(self.store.database, self.settings, EVER, thorough=self.random.random() < 0.5)
        pack(self.store.database, 0.0, 1e9, self.random.choice([4, 100]))

    def everything(self) -> dict[str, list[Row]]:
        """Return all rows of all streams with their places, of all files and of the table."""
        found = {name: self.store.read(name).to_pylist() for name in self.streams}
        sold: list[Row] = []
        for root in self.settings.output_roots:
            for path in Path(root).rglob("*.parquet"):
                folder = next((p for p in path.parts if p.startswith("person=")), "")
                there = pq.ParquetFile(path).read().to_pylist()
                sold += [{**row, **({"person": folder[7:]} if folder else {})} for row in there]
        found["files"] = sold
        kept = self._sql(f"SELECT n, client FROM public.{self.table}")
        found["table"] = [{"n": n, "client": client} for n, client in kept]
        return found

    def erase(self) -> None:
        who = self.random.choice(self.customers)
        before = self.everything()
        done = self.store.erase(self.orders, "asked", keys=[who], dry_run=False)
        assert done["signed"] or not done["events"], done
        assert where_it_is(who, self.settings, self.dsn) == []
        for root in self.settings.output_roots:
            for path in Path(root).rglob("*"):
                assert who not in str(path.parent)
                assert not path.is_file() or who.encode() not in path.read_bytes(), path
        after = self.everything()
        for name, known in before.items():
            kept = [row for row in known if not any(who in str(value) for value in row.values())]
            assert sorted(map(str, after[name])) == sorted(map(str, kept)), name


@pytest.fixture
def made(settings: Settings, test_database: TestDatabase) -> Any:
    with weir.open(settings=settings) as store:
        yield lambda random: Worlds(store, settings, test_database.owner_dsn, random)


@pytest.mark.random
@pytest.mark.filterwarnings("ignore::weir.TruncatedWarning")
@pytest.mark.parametrize("case", range(cases(40, least=2)))
def test_nothing_of_the_subject_is_left_and_every_group_reads_on_each_event_once(
    made: Any, case: int
) -> None:
    random = random_for("everywhere", case)
    world = made(random)
    world.append()
    steps = [world.append, world.append, world.process, world.process, world.process,
             world.scale, world.keep_files, world.truncate, world.erase, world.erase]  # fmt: skip
    for _ in range(40):
        random.choice(steps)()
    world.erase()
    for group, stream in ((world.first, world.orders), (world.second, world.bought)):
        there = {row["n"] for row in world.store.read(stream).to_pylist()}
        while rows(
            world.store.database,
            "SELECT FROM weir.lag WHERE reader_group = :g AND unread_events > 0", g=group,
        ):  # fmt: skip
            world.process()
        assert max(world.read[group].values(), default=1) == 1
        assert there <= set(world.read[group])
