"""What the demo shows at its end, queried from the views by the login that may only read them."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import text

from weir.database.connection import Database
from weir.pages.picture import picture_of


class Views:
    """Queries on the views of the schema `weir`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows(self, sql: str, **values: Any) -> list[Any]:
        """Return all rows of a query."""
        return list(self._database.transaction(lambda c: c.execute(text(sql), values).all()))

    def number(self, sql: str, **values: Any) -> int:
        """Return the one number that a query gives."""
        return int(self.rows(sql, **values)[0][0])

    def stream(self, name: str) -> Any:
        """Return the row of a stream in the view `streams`."""
        return self.rows("SELECT * FROM streams WHERE stream = :name", name=name)[0]

    def consumed(self, group: str) -> int:
        """Return how many events the committed batches of a group had."""
        return self.number(
            """SELECT coalesce(sum(events), 0) FROM batches
            WHERE reader_group = :group AND state = 'committed'""",
            group=group,
        )

    def files(self, stream: str) -> list[str]:
        """Return the paths of a stream's files, below the warehouse."""
        rows = self.rows("SELECT path FROM data_files WHERE stream = :s ORDER BY path", s=stream)
        return [row.path for row in rows]

    def events(self, stream: str, warehouse: Path, columns: Sequence[str]) -> pd.DataFrame:
        """Return the events of a small stream that was never truncated, straight from its files."""
        return _read((warehouse / path for path in self.files(stream)), columns)

    def output(self, group: str, name: str, root: Path) -> pd.DataFrame:
        """Return what a consumer wrote to Parquet and committed, with the number of the batch."""
        frames = [
            _read(sorted((root / row.path).glob("*.parquet"))).assign(batch=row.batch_id)
            for row in self.rows(
                """SELECT batch_id, path FROM parquet_outputs
                WHERE reader_group = :group AND output = :name ORDER BY batch_id""",
                group=group, name=name,
            )
        ]  # fmt: skip
        return pd.concat(frames, ignore_index=True)

    def segments(self, stream: str) -> list[Any]:
        """Return all segments that a stream ever had."""
        return self.rows(
            """SELECT segment AS name, key_low, key_high, creation_epoch, sealed_epoch, events
            FROM segments WHERE stream = :s ORDER BY segment_id""",
            s=stream,
        )

    def epochs(self, stream: str) -> list[Any]:
        """Return the epochs of a stream."""
        return self.rows(
            "SELECT epoch, cause, created_at FROM epochs WHERE stream = :s ORDER BY epoch", s=stream
        )


def active(segments: Sequence[Any], epoch: int) -> list[Any]:
    """Return the segments of an epoch by key. Raises ValueError unless they tile the key space."""
    found = sorted(
        (s for s in segments
         if s.creation_epoch <= epoch and (s.sealed_epoch is None or s.sealed_epoch > epoch)),
        key=lambda s: s.key_low,
    )  # fmt: skip
    bounds = [0.0, *(s.key_high for s in found)]
    if bounds[-1] != 1.0 or [s.key_low for s in found] != bounds[:-1]:
        raise ValueError(f"the segments of epoch {epoch} do not tile the key space: {found}")
    return found


def draw_stream(database: Database, stream: str, folder: Path) -> Path:
    """Write the picture of a stream and return its path."""
    path = folder / f"{stream.replace('/', '-')}.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(picture_of(database, stream), encoding="utf-8")
    return path


def report(views: Views, stream: str, warehouse: Path) -> str:
    """Return the report: epochs and segments, streams, reader groups, positions, decisions."""
    segments = views.segments(stream)
    parts = [f"Epochs of {stream}, with the segments that were active and their key ranges"]
    for row in views.epochs(stream):
        there = "  ".join(
            f"{s.name} [{s.key_low:.4g}, {s.key_high:.4g})" for s in active(segments, row.epoch)
        )
        parts.append(f"  {row.epoch} ({row.cause})  {there}")

    streams = views.rows("SELECT * FROM streams ORDER BY stream")
    lines = []
    for s in streams:
        listed = views.files(s.stream)
        on_disk = [warehouse / path for path in listed if (warehouse / path).is_file()]
        size = sum(path.stat().st_size for path in on_disk)
        lines.append(
            [s.stream, s.current_epoch, s.events_appended, s.events_appended - s.events_retained,
             s.events_retained, len(on_disk), f"{size / 1e6:.1f} MB"]
        )  # fmt: skip
    parts += ["", "Streams", *table(
        ["stream", "epoch", "appended", "truncated", "retained", "files", "on disk"], lines
    )]  # fmt: skip

    groups = views.rows(
        """SELECT g.reader_group, g.subscriber, l.stream, l.position, l.unread_events,
                  l.lost_events, extract(epoch FROM l.waiting)::float AS seconds
        FROM reader_groups g JOIN lag l USING (reader_group) ORDER BY 1 DESC, 3"""
    )
    lines = [
        [g.reader_group, "yes" if g.subscriber else "no", g.stream, views.consumed(g.reader_group),
         g.unread_events, g.lost_events, f"{g.seconds:.0f} s"]
        for g in groups
    ]  # fmt: skip
    parts += ["", "Reader groups", *table(
        ["group", "subscriber", "stream", "consumed", "unread", "lost", "waiting"], lines
    )]  # fmt: skip
    parts += ["", "Positions (segment = offset of the next event to read)"]
    for g in groups:
        parts.append(f"  {g.reader_group:6}  {_cut(g.position)}")
    parts.append(f"  head    {_cut(views.stream(stream).head)}")

    decisions = views.rows(
        """SELECT stream, reason, events FROM retention_decisions
        WHERE cut IS NOT NULL ORDER BY decided_at"""
    )
    parts += ["", "What retention did"]
    parts += [f"  {d.stream}: {d.events:,} events truncated, as {d.reason}" for d in decisions]

    scales = views.rows(
        """SELECT stream, epoch, reason, changes FROM scale_decisions
        WHERE action <> 'none' ORDER BY decided_at"""
    )
    parts += ["", "What scaling by load did"]
    for d in scales:
        points = [f"{point:.4g}" for change in d.changes for point in change["points"]]
        at = f", at {', '.join(points)}" if points else ""
        parts.append(f"  {d.stream}, epoch {d.epoch + 1}: {d.reason}{at}")
    return "\n".join(parts)


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Return lines with aligned columns, numbers to the right."""
    body = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in rows]
    numeric = [all(row[i][:1].isdigit() for row in body) for i in range(len(header))]
    widths = [max(len(line[i]) for line in [list(header), *body]) for i in range(len(header))]
    return [
        "  " + "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(line, widths, numeric, strict=True)
        ).rstrip()
        for line in [list(header), *body]
    ]  # fmt: skip


def _cut(value: Any) -> str:
    entries = json.loads(value) if isinstance(value, str) else value
    return "  ".join(f"{segment} = {offset}" for segment, offset in entries.items())


def _read(paths: Iterable[Path], columns: Sequence[str] | None = None) -> pd.DataFrame:
    wanted = list(columns) if columns else None
    # Not as a dataset: the names of the folders are no columns here.
    tables = [pq.ParquetFile(path).read(columns=wanted) for path in paths]
    frame: pd.DataFrame = pa.concat_tables(tables, promote_options="default").to_pandas()
    return frame
