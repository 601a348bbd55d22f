"""What the tests of retention do to a stream."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.retention.run import retain

DAY = 86400


def decide(lane: Lane, *, dry_run: bool = False) -> Mapping[str, Any]:
    [report] = retain(lane.database, [lane.name], dry_run=dry_run)
    return report


def consume(group: Group) -> None:
    """Read everything, and release it."""
    group.reader().read_all()
    group.checkpoint()


def write(folder: Path, path: str) -> Path:
    """Write a file below a folder, and return its path."""
    file = folder / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("rows")
    return file


def write_files(lane: Lane, warehouse: Path) -> list[Path]:
    """Write the files of a stream, and return their paths in the order of their events."""
    return [write(warehouse, file.path) for file in lane.files()]


def pass_time(lane: Lane, seconds: float) -> None:
    """Set back all that has happened by so many seconds, but not to before the server's start."""
    mine = "group_id IN (SELECT group_id FROM reader_group_stream WHERE stream_id = :s)"
    by = {"by": seconds, "s": lane.stream_id}
    for table, column, where in (
        ("reader_group", "moved_at", mine),
        ("reader_group_stream", "released_at", "stream_id = :s"),
        ("stream_cut", "recorded_at", "stream_id = :s"),
        ("retention_queue", "due_at", "stream_id = :s"),
    ):
        run(
            lane.database,
            f"UPDATE {table} SET {column} = {column} - :by * interval '1 second' "
            f"WHERE {where} AND :s > 0",
            **by,
        )
    run(
        lane.database,
        f"""UPDATE reader SET lease_until = greatest(
            lease_until - :by * interval '1 second', pg_postmaster_start_time())
        WHERE lease_until > '-infinity' AND {mine}""",
        **by,
    )
    for table, column in (("time_index", "clock"), ("epoch", "created_at")):
        run(
            lane.database,
            f"UPDATE {table} SET {column} = {column} - CAST(CAST(:by AS numeric) * 1000000 "
            "AS bigint) WHERE stream_id = :s",
            **by,
        )
