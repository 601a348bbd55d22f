"""The jobs of adjunct stores: defined, built when something has moved, changed, deleted."""

import json
import re
from typing import Any

import pyarrow as pa
import pytest

from tests.raises import raises
from tests.spark.installation import Installation
from tests.world.jobs import run_job
from weir.adjunct.builds import begin_build
from weir.operations.action import Job
from weir.spark.adjuncts.build import build_version

pytestmark = pytest.mark.usefixtures("configured")


def job(weir: Installation, name: str, status: int = 0, **arguments: Any) -> dict[str, Any]:
    """Run a job that ends so; its report, and the sentence with which it failed."""
    assert run_job(name, ["--arguments", json.dumps(arguments)]) == status
    [found] = weir.query(
        "SELECT report, error FROM job_runs WHERE job = :job ORDER BY started_at DESC LIMIT 1",
        job=name,
    )
    return {**(found.report or {}), "error": found.error}


def test_a_store_lives_by_its_jobs(weir: Installation) -> None:
    stream = weir.create("nyc/plane-changes", segments=1)
    for name in ("nyc/planes", "nyc/numbers"):
        job(weir, "define_adjunct_store", adjunct_store=name, stream=str(stream),
            delete_when="op = 'd'", keep_versions="1 h", history="7 d")  # fmt: skip
    weir.put(stream, pa.table({"k": ["a", "b"], "n": [1, 2], "op": ["u", "d"]}))
    built = job(weir, "adjunct")["built"]
    assert {one["adjunct_store"]: (one["version"], one["keys"]) for one in built} == {
        "nyc/planes": (1, 1), "nyc/numbers": (1, 1),
    }  # fmt: skip
    [row] = weir.query("SELECT * FROM adjunct_stores WHERE adjunct_store = 'nyc/planes'")
    assert (row.version, row.events_behind, row.key, row.stream) == (1, 0, "", str(stream))
    nothing = job(weir, "adjunct")
    assert (nothing["built"], nothing["expired"]) == ([], [])

    # One that fails does not stop the other.
    job(weir, "update_adjunct_store", adjunct_store="nyc/planes", value="cast(op as int)")
    weir.put(stream, pa.table({"k": ["c"], "n": [3], "op": ["u"]}))
    failed = job(weir, "adjunct", status=1)
    errors = {one["adjunct_store"]: one.get("error", "") for one in failed["built"]}
    assert "fails for 1 of 1 events" in errors["nyc/planes"]
    assert errors["nyc/numbers"] == ""
    [behind] = weir.query("SELECT * FROM adjunct_stores WHERE adjunct_store = 'nyc/planes'")
    assert (behind.version, behind.events_behind, behind.building) == (1, 1, behind.building)
    assert "fails for 1 of 1" in behind.error
    job(weir, "update_adjunct_store", adjunct_store="nyc/planes", value="-", layout="partitioned")
    [again] = job(weir, "adjunct", adjunct_stores=["nyc/planes"])["built"]
    assert again["keys"] == 2
    assert "adjunct_store_not_found" in job(weir, "adjunct", 2, adjunct_stores=["nyc/x"])["error"]

    job(weir, "delete_adjunct_store", adjunct_store="nyc/planes")
    stores = weir.query("SELECT adjunct_store FROM adjunct_stores")
    assert [one.adjunct_store for one in stores] == ["nyc/numbers"]
    wrong = job(
        weir, "define_adjunct_store", 2, adjunct_store="nyc/x", stream=str(stream), key="no"
    )
    assert "[expression_not_computable]" in wrong["error"]


def test_a_run_with_nothing_to_read_starts_no_session(
    weir: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = weir.create(segments=1)
    job(weir, "define_adjunct_store", adjunct_store="s/store", stream=str(stream))
    asked: list[str] = []

    def watched(self: Job) -> Any:
        asked.append(self.name)
        return weir.spark

    monkeypatch.setattr(Job, "spark", property(watched))
    [first] = job(weir, "adjunct")["built"]
    assert (first["keys"], asked) == (0, ["adjunct"])
    weir.scale(stream, ["0.0"])
    [moved] = job(weir, "adjunct")["built"]
    assert (moved["version"], asked) == (1, ["adjunct"])
    assert job(weir, "adjunct")["built"] == []


def test_who_waits_for_another_builder_gives_up_after_the_patience_of_the_store(
    weir: Installation,
) -> None:
    stream = weir.create(segments=1)
    job(weir, "define_adjunct_store", adjunct_store="s/store", stream=str(stream), patience=1)
    begin_build(weir.database, "s/store", builder="another", lease=60.0)
    with raises("adjunct_build_running another 1"):
        build_version(weir.opened, "s/store")
    [said] = [line for line in weir.said if line.startswith("waiting for another")]
    assert re.search(r"version 1 of adjunct store s/store.* lease ends in (5\d|60) s$", said)
