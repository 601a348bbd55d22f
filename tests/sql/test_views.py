"""The views say what happened, to a login that may read nothing else."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import TestDatabase
from tests.world.groups import Group
from tests.world.streams import Lane, rows, staged
from weir.database.connection import Database
from weir.local.embedded_postgres import EmbeddedPostgres
from weir.retention.capture import capture
from weir.retention.run import retain


@pytest.fixture
def told(
    postgres_server: EmbeddedPostgres,
    test_database: TestDatabase,
    database: Database,
    tmp_path: Path,
) -> dict[str, list[dict[str, Any]]]:
    """What each view says after a day in the life of a stream."""
    lane = Lane.made(database, name="nyc/flights", retention="consumed")
    late = lane.opened("late", source="dag/run/late")
    lane.append({"0.0": [3, 4], "1.0": 5}, batch="jan", inputs=["jan.csv"], source="dag/run/jan")
    group, audit = Group.made(lane), Group.made(lane, subscriber=False)
    lane.scale("0.0", request_id="dag/run/scale")
    lane.commit(late, {"0.0": 6})
    reader = group.reader("task")
    out = Lane.made(database, name="nyc/delays", segments=1, retention="consumed")
    batch = reader.must_open()
    output = {"kind": "parquet", "output": "delays", "root": str(tmp_path), "path": "d/attempt=1/"}
    reader.commit(batch, [staged(out.opened(), {"0.0": 2})], outputs=[output])
    group.checkpoint("noon")
    retain(database)
    capture(database)
    assert audit.name
    views = rows(database, "SELECT viewname FROM pg_views WHERE schemaname = 'weir'")
    viewer = Database(
        postgres_server.dsn(test_database.name, "weir_view"), patience=60, connect_patience=60
    )
    found = {
        row.viewname: [dict(r._mapping) for r in rows(viewer, f"SELECT * FROM {row.viewname}")]
        for row in views
    }
    viewer.dispose()
    return found


def test_views_say_what_happened(told: dict[str, list[dict[str, Any]]]) -> None:
    [flights] = [s for s in told["streams"] if s["stream"] == "nyc/flights"]
    assert (flights["events_appended"], flights["events_retained"]) == (18, 0)
    assert (flights["state"], flights["current_epoch"], flights["bytes_retained"]) == (
        "active", 3, 0,
    )  # fmt: skip
    assert flights["head"] == flights["tail"] == {"1.3": 0, "2.3": 0, "3.3": 0}
    epochs = [e for e in told["epochs"] if e["stream"] == "nyc/flights"]
    assert [(e["cause"], e["reference_epoch"]) for e in epochs] == [
        ("create", 0), ("scale", 1), ("roll", 0), ("roll", 1),
    ]  # fmt: skip
    assert epochs[1]["request_id"] == "dag/run/scale"
    asked = {(r["request_id"], r["operation"], r["object"]) for r in told["requests"]}
    assert ("dag/run/scale", "scale", "nyc/flights") in asked
    segments = [s for s in told["segments"] if s["stream"] == "nyc/flights"]
    assert {s["segment"]: s["events"] for s in segments if s["events"]} == {
        "0.0": 7, "1.0": 5, "0.2": 6,
    }  # fmt: skip
    assert {s["segment"] for s in segments if s["active"]} == {"2.3", "3.3", "1.3"}
    appends = [t for t in told["transactions"] if t["stream"] == "nyc/flights"]
    assert {(t["batch_id"], t["source"], t["state"], t["events"]) for t in appends} == {
        ("late", "dag/run/late", "committed", 6),
        ("jan", "dag/run/jan", "committed", 12),
    }
    assert [(f["path"], f["state"]) for f in told["input_files"]] == [("jan.csv", "committed")]
    assert [f["stream"] for f in told["data_files"]] == ["nyc/delays"]
    assert len(told["time_indexes"]) == 4
    assert len(told["garbage_files"]) == 4


def test_views_say_who_has_read_what(told: dict[str, list[dict[str, Any]]]) -> None:
    groups = {g["reader_group"]: g for g in told["reader_groups"]}
    assert {g["streams"] for g in groups.values()} == {"nyc/flights"}
    reading = next(name for name, g in groups.items() if g["subscriber"])
    audit = next(name for name, g in groups.items() if not g["subscriber"])
    lags = {x["reader_group"]: x for x in told["lag"]}
    assert (lags[reading]["unread_events"], lags[reading]["lost_events"]) == (0, 0)
    assert lags[reading]["lag"].total_seconds() == 0
    assert (lags[audit]["unread_events"], lags[audit]["lost_events"]) == (0, 18)
    assert [(r["reader_id"], r["segments"], r["lease_expired"]) for r in told["readers"]] == [
        ("task", 0, False)
    ]
    assert [(b["batch_id"], b["state"], b["events"], b["bytes"]) for b in told["batches"]] == [
        (1, "committed", 18, 180)
    ]
    [folder] = told["parquet_outputs"]
    assert folder["path"].startswith("/")
    assert folder["path"].endswith("/d/attempt=1/")
    [noon] = told["checkpoints"]
    assert (noon["checkpoint"], noon["kind"], noon["released"]) == ("noon", "manual", True)
    positions = [p for p in told["positions"] if p["reader_group"] == reading]
    assert {(p["segment"], p["state"], p["next_offset"]) for p in positions} == {
        ("1.3", "unassigned", 0), ("2.3", "unassigned", 0), ("3.3", "unassigned", 0),
    }  # fmt: skip
    [decision] = [d for d in told["retention_decisions"] if d["stream"] == "nyc/flights"]
    assert (decision["rule"], decision["events"]) == ("consumed", 18)
    assert decision["held_by"] == [reading]
    [captured] = [c for c in told["retention_set"] if c["stream"] == "nyc/flights"]
    assert captured["events"] == 18
