"""What small files cost: putting them together, and reading what came of it."""

import shutil
import time
from collections.abc import Iterator

import pyarrow as pa
from sqlalchemy import Connection, text

from benchmarks.data_path import opened, to_nothing
from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.arrow.append import append_table
from weir.compaction.run import Budget, compact
from weir.controller.streams import create_stream
from weir.model.names import StreamName, stream_name

ROWS = 1_000  # of a small file
_NO_END = Budget(1 << 60, 1e9)


def _tables(files: int, rows: int) -> Iterator[pa.Table]:
    for i in range(files):
        ids = range(i * rows, (i + 1) * rows)
        yield pa.table({
            "id": list(ids), "key": [f"key-{n % 997}" for n in ids],
            "value": [n / 7 for n in ids], "payload": [f"payload of {n}" for n in ids],
        })  # fmt: skip


def _appended(setting: Setting, files: int, rows: int) -> StreamName:
    """Return a new stream of one segment with so many appends of so many rows."""
    name = stream_name(f"bench/files{setting.number()}")
    create_stream(setting.database, name, routing_key="key", segments=1, request_id=str(name))
    for i, table in enumerate(_tables(files, rows)):
        append_table(opened(setting), str(name), table, writer_id="bench", batch_id=str(i))
    return name


def small_files(setting: Setting) -> tuple[StreamName, int]:
    """Return the stream of small files that the figures share, and their number."""
    files = 10_000 if setting.full else 2_000
    cached = setting.__dict__.get("_small_files")
    if cached is None:
        cached = setting.__dict__["_small_files"] = _appended(setting, files, ROWS)
    return cached, files


def compacted(setting: Setting) -> Figure:
    """Return the figure of compacting small files, beside Spark reading and writing the rows."""
    name, files = small_files(setting)
    [(stream_id,)] = setting.database.transaction(
        lambda c: c.execute(
            text("SELECT stream_id FROM stream WHERE stream_name = :n"), {"n": str(name)}
        ).all()
    )
    folder, plain = setting.folder / "plain files", setting.folder / "plain compacted"

    def rows() -> list[dict[str, object]]:
        return [
            dict(row._mapping)
            for row in setting.database.transaction(
                lambda c: c.execute(
                    text("SELECT * FROM data_file WHERE stream_id = :s"), {"s": stream_id}
                ).all()
            )
        ]

    before = rows()
    folder.mkdir()
    for i, row in enumerate(before):
        shutil.copy(f"{setting.settings.warehouse}/{row['path']}", folder / f"{i}.parquet")
    columns = ", ".join(before[0])
    values = ", ".join(f":{column}" for column in before[0])
    again = text(f"INSERT INTO data_file ({columns}) VALUES ({values})")  # noqa: S608 - columns

    def ours() -> float:
        start = time.perf_counter()
        [report] = compact(setting.database, setting.settings, _NO_END, [name], thorough=True)
        took = time.perf_counter() - start
        assert report["files_before"] == files, report

        def restored(connection: Connection) -> None:
            execute = connection.execute
            execute(text("DELETE FROM data_file WHERE stream_id = :s"), {"s": stream_id})
            execute(text("DELETE FROM garbage WHERE stream_id = :s"), {"s": stream_id})
            execute(again, before)

        setting.database.transaction(restored)
        return took

    def reference() -> None:
        shutil.rmtree(plain, ignore_errors=True)
        setting.spark.read.parquet(str(folder)).write.parquet(str(plain))

    return Figure(
        "files/compact",
        f"{files:,} files of {ROWS:,} rows put together, beside Spark reading them and writing "
        "plain files",
        ours,
        reference,
        limit=1.5,
        runs=3,
    )


def read(setting: Setting) -> Figure:
    """Return the figure of reading a compacted stream, beside the same rows appended at once."""
    small, files = small_files(setting)
    compact(setting.database, setting.settings, _NO_END, [small], thorough=True)
    whole = _appended(setting, files * ROWS // 1_000_000, 1_000_000)

    def side(name: StreamName) -> None:
        to_nothing(setting.frame(name, "none"))

    return Figure(
        "files/read_compacted",
        f"{files * ROWS:,} events of one segment that were appended by {ROWS:,} and compacted, "
        "beside as many that were appended by a million",
        lambda: side(small),
        lambda: side(whole),
        limit=1.1,
        warm_up=2,
    )


FIGURES = {"files/compact": compacted, "files/read_compacted": read}
