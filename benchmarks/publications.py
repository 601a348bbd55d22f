"""What it costs to publish streams as tables."""

import time
from pathlib import Path

from benchmarks.figure import Figure
from benchmarks.setting import Setting
from weir.annex.publication.run import publish
from weir.controller.commit import commit
from weir.controller.ownership import read_installation
from weir.controller.streams import create_stream
from weir.controller.transactions import begin
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.model.names import StreamName, stream_name
from weir.model.schema import Field
from weir.warehouse.marker import Marker, write_marker

NEW, FEW, MANY = 1_000, 1_000, 100_000
_FIELDS: list[Field] = [
    {"name": name, "type": "long", "nullable": True, "metadata": {}} for name in ("key", "value")
]


def publication(setting: Setting) -> Figure:
    """Return the figure of publishing new files after many beside after few."""
    warehouse = Path(setting.settings.warehouse)
    warehouse.mkdir(parents=True, exist_ok=True)
    write_marker(str(warehouse), Marker(read_installation(setting.database).installation_id))
    many, few = _published(setting, MANY, 10_000), _published(setting, FEW, FEW)
    return Figure(
        name="engines/publish",
        what=f"{NEW:,} new files of a stream are published after {MANY:,}, beside after {FEW:,}",
        ours=lambda: _publish(setting, many, NEW),
        reference=lambda: _publish(setting, few, NEW),
        limit=1.5,
    )


def _published(setting: Setting, files: int, at_once: int) -> StreamName:
    """Return a stream of which so many files are published."""
    name = stream_name(f"bench/published{setting.number()}")
    create_stream(
        setting.database, name, routing_key="key", segments=1, fields=_FIELDS, publish="iceberg",
        request_id=str(name),
    )  # fmt: skip
    for _ in range(files // at_once):
        _publish(setting, name, at_once)
    return name


def _publish(setting: Setting, name: StreamName, files: int) -> float:
    """Append files that nobody reads, and return how long it takes to publish them."""
    attempt = begin(
        setting.database, name, writer_id="bench", batch_id=str(setting.number()),
        fingerprint="", lease=600.0, source="bench", inputs=[],
    )  # fmt: skip
    assert isinstance(attempt, Attempt)
    written = [
        StagedFile(0, f"{attempt.folder}_weir_segment=0/_weir_task={i}/part.parquet", 10, 100,
                   i * 10, i * 10 + 9)
        for i in range(files)
    ]  # fmt: skip
    commit(setting.database, Staged(attempt, tuple(written), _FIELDS))
    begun = time.monotonic()
    [done] = publish(setting.database, setting.settings, [name])
    took = time.monotonic() - begun
    assert done["added"] == files, done
    return took


FIGURES = {"engines/publish": publication}
