"""Changes of a stream's metadata, repeated so often that a run can be timed."""

import json
import time
from collections.abc import Callable

from benchmarks.history import BYTES, EVENTS, SLOTS, History
from benchmarks.setting import Setting
from weir.controller.commit import commit
from weir.controller.scale import scale
from weir.controller.transactions import begin
from weir.kernel.attempt import Attempt, Staged, StagedFile
from weir.queries.controller import epochs
from weir.retention.manual_truncation import truncate


def scaled(setting: Setting, history: History) -> Callable[[], None]:
    """Return a run of 40 scales: one segment is split and its halves are merged, 20 times."""
    active = setting.database.transaction(
        lambda c: epochs.active_segments(c, stream_id=history.stream_id)
    )
    whole = next(s for s in active if s.key_high - s.key_low > 0.9 / SLOTS)
    segments = [whole.name]

    def run() -> None:
        nonlocal segments
        for _ in range(40):
            done = scale(
                setting.database, history.name, seal=segments, parts=3 - len(segments),
                request_id=f"scale {setting.number()}",
            )  # fmt: skip
            segments = [str(segment) for segment, _, _ in done["created"]]

    return run


def committed(setting: Setting, history: History) -> Callable[[], float]:
    """Return a run of 100 commits of a file each. It returns their seconds, without those of
    beginning the transactions."""

    def staged() -> Staged:
        attempt = begin(
            setting.database, history.name, writer_id="bench", batch_id=f"{setting.number()}",
            fingerprint="", lease=600.0, source="bench",
        )  # fmt: skip
        assert isinstance(attempt, Attempt)
        assert attempt.fields is not None
        segment = attempt.segments[setting.number() % len(attempt.segments)]
        path = f"{attempt.folder}_weir_segment={segment.segment_id}/_weir_task=0/part.parquet"
        file = StagedFile(segment.segment_id, path, EVENTS, BYTES, 0, EVENTS - 1)
        return Staged(attempt, (file,), attempt.fields)

    def run() -> float:
        ready = [staged() for _ in range(100)]
        start = time.perf_counter()
        for one in ready:
            commit(setting.database, one)
        return time.perf_counter() - start

    return run


def truncated(setting: Setting, history: History) -> Callable[[], float]:
    """Return a run of 30 truncations, each an epoch further, which returns their seconds. The first
    run begins in the middle of the history."""
    head = history.epochs // 2

    def run() -> float:
        nonlocal head
        heads = range(head + 1, head + 31)
        head += 30
        cuts = setting.database.transaction(
            lambda c: [json.dumps(history.cut(c, epoch)) for epoch in heads]
        )
        start = time.perf_counter()
        for cut in cuts:
            truncate(setting.database, history.name, cut, request_id=f"cut {setting.number()}")
        return time.perf_counter() - start

    return run
