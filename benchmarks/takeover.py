"""How soon a batch goes on whose reader was killed."""

import multiprocessing
import time
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from multiprocessing.context import SpawnProcess

from benchmarks.batches import ALL, FEW, ROWS, Stream, content, rows_of
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.controller.read_plan import plan_of_bounds
from weir.database.connection import Database
from weir.reader_groups.batches.next import next_batch
from weir.reader_groups.batches.reading import Reading
from weir.reader_groups.group_streams import group_tails
from weir.reader_groups.groups.readers import join, renew
from weir.settings import Settings


def takeover(setting: Setting) -> Figure:
    """Return the figure of the seconds from the death of a reader to the first row of its batch in
    the hands of another, beside its lease."""
    setting.durable(True)
    stream = Stream.made(setting, FEW)
    stream.append(content(setting))
    lease = 10.0
    settings = replace(setting.settings, reader_lease=lease)
    context = multiprocessing.get_context("spawn")

    def ours() -> float:
        group = stream.made_group()
        readers: list[SpawnProcess] = []
        pipes: list[Pipe] = []
        for name in ("first", "second"):
            here, there = context.Pipe()
            reader = context.Process(
                target=_read_first, args=(settings, group, name, there), daemon=True
            )
            reader.start()
            assert here.recv() == ("joined" if readers else "opened")
            readers.append(reader)
            pipes.append(here)
        time.sleep(lease)  # the first reader has renewed its lease once or more
        readers[0].kill()
        killed = time.monotonic()
        seconds = float(pipes[1].recv()) - killed
        assert seconds > 0, "the second had something to read while the first was there"
        readers[1].kill()
        for reader in readers:
            reader.join()
        return seconds

    return Figure(
        "batch/takeover",
        f"seconds from SIGKILL of a reader to the first row of its batch read by another, beside "
        f"its lease of {lease:.0f} s",
        ours,
        lambda: lease,
        limit=1.2,
        runs=3,
        small_runs=1,
        warm_up=0,
    )


def _read_first(settings: Settings, group: str, name: str, pipe: Pipe) -> None:
    """Read as a process of its own. The first reader holds its batch for ever; the second waits for
    it, and sends the time of its first row."""
    database = Database.of(settings)
    token = join(database, group, name, settings.reader_lease)
    alive = database.keep_alive(
        lambda c: renew(c, group, name, token, settings.reader_lease),
        every=settings.reader_lease / 3,
    )
    with alive:
        if name == "second":
            pipe.send("joined")
        tails = database.transaction(lambda c: group_tails(c, group))
        batch = next_batch(
            database, group, name, token, Reading(ALL), until=tails, lease=settings.reader_lease
        )
        assert batch is not None
        if name == "first":
            pipe.send("opened")
            time.sleep(3600)
        [stream_id] = {bound.stream_id for bound in batch.bounds}
        bounds = [(bound.segment_id, bound.start, bound.end) for bound in batch.bounds]
        slices, fields = database.transaction(lambda c: plan_of_bounds(c, stream_id, bounds))
        assert rows_of(settings, slices[0], fields) == ROWS
        pipe.send(time.monotonic())


FIGURES = {"batch/takeover": takeover}
