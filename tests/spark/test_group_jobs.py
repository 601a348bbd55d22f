"""The life of a reader group by its jobs, as forms start them: each argument arrives."""

import json
from typing import Any

import pytest

from tests.spark.installation import Installation
from tests.world.groups import open_batch
from tests.world.jobs import run_job
from weir.reader_groups.batches.budget import Budget
from weir.reader_groups.batches.lifecycle import commit_batch
from weir.reader_groups.groups.readers import join

pytestmark = pytest.mark.usefixtures("configured")


def job(weir: Installation, which: str, **arguments: Any) -> dict[str, Any]:
    """Run a job that must succeed; its report."""
    if "reader_group" not in arguments:
        arguments["reader_group"] = "g"
    assert run_job(which, ["--arguments", json.dumps(arguments)]) == 0
    found = "SELECT report FROM job_runs WHERE job = :job ORDER BY started_at DESC LIMIT 1"
    return dict(weir.value(found, job=which))


def group(weir: Installation, columns: str, name: str = "g") -> tuple[Any, ...]:
    [row] = weir.query(f"SELECT {columns} FROM reader_group WHERE name = :name", name=name)
    return tuple(row)


def position(weir: Installation, name: str = "g") -> Any:
    return weir.value("SELECT position FROM lag WHERE reader_group = :name", name=name)


def test_a_group_is_made_changed_moved_forked_and_deleted_by_its_jobs(weir: Installation) -> None:
    stream = weir.create(segments=1)
    other = weir.create("s/other", segments=1)
    weir.append(stream, [("a", n) for n in range(10)])

    made = {"streams": [str(stream)], "start": "0.0=2", "end": "0.0=8", "on_gap": "skip"}
    job(weir, "create_reader_group", **made, time_out="7 d", release="manual", max_ahead="2 h")
    settings = "subscriber, on_gap, release, time_out, generation, max_outstanding"
    assert group(weir, settings) == (True, "skip", "manual", 7 * 86400, 0, 3)
    assert group(weir, "aligned, max_ahead") == (False, 7200)
    assert weir.query("SELECT position, end_cut FROM lag") == [({"0.0": 2}, {"0.0": 8})]

    job(weir, "update_reader_group", generation=0, on_gap="skip")
    assert group(weir, settings) == (True, "skip", "manual", 7 * 86400, 1, 3), "as it was"
    changed = {"subscriber": "no", "on_gap": "fail", "release": "automatic", "time_out": "none"}
    changed |= {"aligned": "yes", "max_ahead": "none"}
    pins = ["s/events 0.25..0.5 big"]
    job(weir, "update_reader_group", **changed, max_outstanding=5, pins=pins)
    assert group(weir, settings) == (False, "fail", "automatic", None, 2, 5)
    assert group(weir, "aligned, max_ahead") == (True, None)
    assert weir.query("SELECT key_low, label FROM pins") == [(0.25, "big")]
    job(weir, "update_reader_group", aligned="no", generation=2)
    streams = [str(stream), str(other)]
    job(weir, "update_reader_group", pins=["-"], streams=streams, start="tail", subscriber="yes")
    assert group(weir, settings) == (True, "fail", "automatic", None, 4, 5)
    assert weir.query("SELECT FROM pins") == []
    assert weir.value("SELECT count(*) FROM lag") == 2
    job(weir, "update_reader_group", streams=[str(stream)])

    token = join(weir.database, "g", "reader", 60.0)
    everything = Budget.of(weir.settings)
    batch = open_batch(weir.database, "g", "reader", token, lease=60.0, budget=everything)
    assert batch is not None
    waits = job(weir, "checkpoint_reader_group", name="b", barrier=True, patience=60)
    assert waits["waits_for"] == ["batch 1 of reader reader"]
    times = "SELECT extract(epoch FROM expires_at - created_at) FROM checkpoint"
    assert weir.value(times) == 60
    job(weir, "checkpoint_reader_group", name="b", cancel=True)
    assert weir.value("SELECT state FROM checkpoint") == "cancelled"
    job(weir, "checkpoint_reader_group", name="noon")
    job(weir, "reader_offline", reader="reader", position="0.0=5")
    assert position(weir) == {"0.0": 5}

    job(weir, "fork_reader_group", new_reader_group="again", at="checkpoint noon")
    assert (position(weir, "again"), group(weir, "subscriber", "again")) == ({"0.0": 2}, (True,))
    job(weir, "reset_reader_group", to="checkpoint noon", allow_repeat=True)
    assert position(weir) == {"0.0": 2}
    token = join(weir.database, "g", "reader", 60.0)
    batch = open_batch(weir.database, "g", "reader", token, lease=60.0, budget=everything)
    assert batch is not None
    commit_batch(weir.database, batch, lease=60.0)
    assert position(weir) == {"0.0": 8}, "its end"
    job(weir, "update_reader_group", release="manual")
    job(weir, "release_reader_group", at="0.0=4")
    released = "SELECT released FROM subscribers WHERE reader_group = 'g'"
    assert weir.value(released) == {"0.0": 4}
    job(weir, "delete_reader_group")
    job(weir, "delete_reader_group", reader_group="again")
    assert weir.query("SELECT FROM reader_groups") == []
