"""What is wrong now: each wrong state appears with its colour and its sentence, and goes away."""

import re
import shlex
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial

import psycopg2
import pytest
from fastapi import HTTPException
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.conftest import TestDatabase
from tests.pages.conftest import Served, look, told
from tests.pages.serving import anybody
from tests.world.groups import Group
from tests.world.streams import Lane, rows, run
from weir.database.connection import Database
from weir.front_ends import speaking
from weir.history.job_runs import BY_HAND, RunId, record_end, record_start
from weir.operations.examination import troubles
from weir.operations.form import is_required
from weir.operations.jobs import FORMS
from weir.pages import now
from weir.pages.app import Access, create_app
from weir.pages.metrics import rows_of
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.reader_groups.groups.readers import reader_offline
from weir.settings import Settings
from weir.terminal.__main__ import parser
from weir.terminal.options import given_arguments


def wrong(database: Database) -> list[tuple[str, str, str]]:
    """Return what is wrong, and see that everybody who tells it tells the same."""
    found = rows(database, "SELECT * FROM weir.troubles ORDER BY kind, subject")
    assert all(one.sentence.endswith(".") and not one.advice.endswith(".") for one in found)
    with speaking("terminal", FORMS):
        checks = list(troubles(database))
    assert sorted(one.what for one in checks) == sorted(one.kind for one in found)
    typed = [words for one in checks for words in re.findall("run `weir (.*)`$", one.remedy)]
    assert len(typed) == sum(one.action is not None for one in found)
    for words in typed:
        parsed = parser().parse_args(shlex.split(words))
        form = FORMS[parsed.job]
        needed = {one.name for one in fields(form) if is_required(one)}
        assert needed <= given_arguments(form, parsed).keys()
    counts = [one.value for one in rows_of(database) if one.metric == "weir_alerts"]
    assert sum(counts) == len(found)
    return [(one.severity, one.kind, one.subject) for one in found]


def nobody(conn_id: str = "") -> Settings:
    """Let nobody see anything."""
    raise HTTPException(403, "no")


def older(database: Database, group: Group, hours: int = 2) -> None:
    """Let what there is of a stream and a group be so many hours old."""
    back = f"interval '{hours} hours'"
    micros = hours * 3_600_000_000
    run(
        database,
        f"UPDATE reader_group SET moved_at = moved_at - {back}, created_at = created_at - {back}",
    )
    run(database, f"UPDATE reader SET joined_at = joined_at - {back}")
    run(
        database,
        f"UPDATE reader_batch SET opened_at = opened_at - {back}, "
        f"committed_at = committed_at - {back}",
    )
    run(database, f"UPDATE reader_group_stream SET newest_read = newest_read - {micros}")
    run(database, f"UPDATE time_index SET clock = clock - {micros}")
    run(database, f"UPDATE transaction SET clock = clock - {micros}")
    run(
        database,
        f"UPDATE stream SET last_clock = last_clock - {micros}, created_at = created_at - {back}",
    )


def ran(
    database: Database, dag: str, run_id: str, state: str, group: str = "", error: str | None = None
) -> None:
    """Record a run of `process`, which fails or succeeds."""
    task = RunId(dag, run_id, "process")
    database.transaction(lambda c: record_start(c, task, "process", {"reader_group": group}))
    database.transaction(lambda c: record_end(c, task, state, report={}, error=error))


def test_nothing_is_wrong_with_what_is_read(client: TestClient, database: Database) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    group = Group.made(lane, name="totals")
    lane.append({"0.0": 3})
    reader = group.reader()
    assert wrong(database) == [], "it reads"
    reader.commit(reader.must_open())
    older(database, group, 30)
    assert wrong(database) == [], "it has read everything"
    assert told(client, "now") == {"troubles": [], "more": False}


def test_a_reader_that_died_over_a_batch_is_told_until_another_has_read_it(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane, name="totals")
    lane.append({"0.0": 98_000})
    group.reader().must_open()
    assert wrong(database) == []
    run(database, "UPDATE reader SET lease_until = '-infinity'")
    assert wrong(database) == [("red", "reader died", "totals")]
    [one] = told(client, "now")["troubles"]
    assert one["sentence"] == "Reader reader of reader group totals died over 98,000 events."
    assert (one["page"], one["query"]) == ("group", {"name": "totals"})
    reader_offline(database, "totals", "reader", "", request_id="offline")
    assert wrong(database) == [("red", "reader died", "totals")], "the batch waits all the same"
    assert (one["action"], one["given"]) == ("process", {"reader_group": "totals"})
    assert told(client, "groups")["groups"][0]["health"]["level"] == "bad"
    health = told(client, "streams/shop/orders")["facts"]["health"]
    assert (health["level"], health["words"]) == ("bad", "totals: its reader died")
    other = group.reader("other")
    assert wrong(database) == [("amber", "reader died", "totals")], "somebody may take it over"
    other.commit(other.must_open())
    assert wrong(database) == []


def test_a_group_without_a_reader_is_late_by_its_own_custom(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane, name="totals")
    reader = group.reader()
    for _ in range(2):  # it reads every three hours
        older(database, group, 3)
        lane.append({"0.0": 1})
        reader.commit(reader.must_open())
    reader.leave()
    lane.append({"0.0": 5})
    older(database, group, 4)
    assert wrong(database) == []
    older(database, group, 3)
    assert wrong(database) == [("amber", "no reader", "totals")]
    older(database, group, 30)
    assert wrong(database) == [("red", "no reader", "totals")]
    reader = group.reader()
    reader.commit(reader.must_open())
    assert wrong(database) == []


def test_a_new_group_that_nobody_reads_is_late_after_ten_minutes(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane, name="totals")
    lane.append({"0.0": 5})
    assert wrong(database) == []
    older(database, group, 1)
    assert wrong(database) == [("amber", "no reader", "totals")]


def test_a_group_that_reads_more_slowly_than_is_appended_falls_behind(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane, name="totals")
    lane.append({"0.0": 10})
    lane.append({"0.0": 1_000_000})
    reader = group.reader()
    batch = reader.must_open(10)
    reader.commit(batch)
    run(database, "UPDATE reader_batch SET opened_at = opened_at - interval '20 minutes'")
    run(database, "UPDATE stream SET created_at = created_at - interval '1 hour'")
    micros = 20 * 60_000_000
    for table, column in (
        ("time_index", "clock"),
        ("transaction", "clock"),
        ("reader_group_stream", "newest_read"),
    ):
        run(database, f"UPDATE {table} SET {column} = {column} - {micros}")
    assert wrong(database) == [("amber", "falls behind", "totals")]
    run(database, "UPDATE reader_batch SET opened_at = committed_at - interval '1 millisecond'")
    assert wrong(database) == []


def test_readers_that_commit_nothing_for_an_hour_make_no_progress(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane, name="totals")
    lane.append({"0.0": 5})
    reader = group.reader()
    batch = reader.must_open()
    older(database, group)
    assert wrong(database) == [("amber", "no progress", "totals")]
    reader.commit(batch)
    assert wrong(database) == []


@pytest.mark.parametrize(("dag", "severity"), [("shop", "red"), ("by hand", "amber")])
def test_a_run_that_failed_is_told_until_it_succeeds(
    client: TestClient, database: Database, dag: str, severity: str
) -> None:
    ran(database, dag, "monday", "failed", "totals", "the disk is full.")
    kept = [(severity, "run failed", f"{dag}/process")]
    assert wrong(database) == kept
    [one] = told(client, "now")["troubles"]
    assert one["sentence"] == f"The run monday of {dag} (process) failed: the disk is full."
    assert one["query"] == {
        "dag_id": dag,
        "run_id": "monday",
        "task_id": "process",
        "map_index": -1,
    }
    ran(database, dag, "tuesday", "succeeded", "other")
    assert wrong(database) == kept, "that was another work"
    ran(database, dag, "wednesday", "succeeded", "totals")
    assert wrong(database) == []


@pytest.mark.parametrize(
    ("dag", "run_id", "days"),
    [("shop", "scheduled__1", 7), ("shop", "manual__1", 1), ("by hand", "1", 1)],
)
def test_a_run_that_failed_is_told_until_somebody_had_time_to_mend_it(
    database: Database, dag: str, run_id: str, days: int
) -> None:
    ran(database, dag, run_id, "failed", "totals", error="no.")
    run(database, f"UPDATE job_run SET updated_at = updated_at - interval '{days} days 1 minute'")
    assert wrong(database) == []
    run(database, "UPDATE job_run SET updated_at = updated_at + interval '2 minutes'")
    assert [subject for _, _, subject in wrong(database)] == [f"{dag}/process"]


def test_a_task_that_fails_again_and_again_is_one_line(
    client: TestClient, database: Database
) -> None:
    for hour in range(5):
        ran(database, "shop", f"hour {hour}", "failed", f"of hour {hour}", f"no {hour}.")
        run(database, "UPDATE job_run SET updated_at = updated_at - interval '1 hour'")
    ran(database, "shop", "hour 5", "succeeded", "of hour 3")
    assert wrong(database) == [("red", "run failed", "shop/process")]
    [one] = told(client, "now")["troubles"]
    [(first,)] = rows(
        database,
        "SELECT to_char(min(updated_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') FROM job_run",
    )
    assert one["sentence"] == (
        f"The run hour 4 of shop (process) failed: no 4. It is the newest of 4 since {first} UTC."
    )
    assert one["query"]["run_id"] == "hour 4"
    for hour in (0, 1, 2, 4):
        ran(database, "shop", f"again {hour}", "succeeded", f"of hour {hour}")
    assert wrong(database) == []


def as_owner(database: TestDatabase, sql: str) -> None:
    with psycopg2.connect(database.owner_dsn) as owner, owner.cursor() as cursor:
        cursor.execute(sql)


def server_started(database: TestDatabase, ago: str) -> None:
    """Let leases count from so long ago on, as if the server had started then."""
    as_owner(
        database,
        "CREATE OR REPLACE FUNCTION weir_internal.lease_is_over(in_until timestamptz, in_least "
        "double precision) RETURNS boolean LANGUAGE sql PARALLEL SAFE RETURN greatest(in_until, "
        f"clock_timestamp() - interval '{ago}' + in_least * interval '1 second') "
        "< clock_timestamp()",
    )


def job_ran(database: Database, *jobs: str, hours: int = 0, by_hand: bool = False) -> None:
    """Record that jobs with a schedule ran so many hours ago."""
    for job in jobs:
        task = RunId(BY_HAND if by_hand else f"weir_{job}", f"scheduled__{hours}", job)
        database.transaction(partial(record_start, run=task, job=job, arguments={}))
        database.transaction(partial(record_end, run=task, state="succeeded", report={}))
        run(
            database,
            f"UPDATE job_run SET started_at = started_at - interval '{hours} hours' "
            "WHERE job = :job AND run_id = :run_id",
            job=job,
            run_id=task.run_id,
        )


def test_jobs_that_do_not_run_though_there_is_work_are_told(
    database: Database, test_database: TestDatabase
) -> None:
    lane = Lane.made(
        database, 1, name="shop/orders", scaling="event_rate", target_rate=9, scale_factor=2
    )
    group = Group.made(lane, name="totals")
    lane.append({"0.0": 3})
    reader = group.reader()
    reader.commit(reader.must_open())
    older(database, group, 3)
    assert wrong(database) == [], "this store is new"
    as_owner(
        test_database,
        "UPDATE weir_internal.installation SET created_at = now() - interval '2 days'",
    )
    server_started(test_database, "10 minutes")
    assert wrong(database) == [], "what starts with the server had no chance"
    server_started(test_database, "2 days")
    assert wrong(database) == [("amber", "not run", "weir")]
    [(sentence,)] = rows(database, "SELECT sentence FROM weir.troubles")
    assert sentence == (
        "There is work for weir_checkpoints, weir_scale, weir_stream_cuts, and no run began yet."
    )
    job_ran(database, "checkpoints", "scale", "stream_cuts", hours=2)
    assert wrong(database) == [], "nothing has come since"
    lane.append({"0.0": 3})
    assert wrong(database) == [], "their schedule comes round in five minutes"


@pytest.mark.parametrize("job", ["upkeep", "retention"])
def test_upkeep_that_stands_still_is_red(
    database: Database, test_database: TestDatabase, job: str
) -> None:
    server_started(test_database, "50 hours")
    lane = Lane.made(database, 1, name="shop/orders")
    lane.append({"0.0": 3})
    run(database, "DELETE FROM capture_queue")
    run(database, "UPDATE transaction SET clock = clock - 30 * 3600000000")
    job_ran(database, job, hours=40)
    if job == "retention":
        run(
            database,
            "INSERT INTO retention_queue VALUES (:s, clock_timestamp() - interval '5 hours')",
            s=lane.stream_id,
        )
        job_ran(database, "upkeep")
        assert wrong(database) == [], "it keeps everything"
        run(database, "UPDATE stream SET retention = 'size', retain_max_bytes = 1000000")
    [(severity, kind, _)] = wrong(database)
    assert (severity, kind) == ("red", "not run")
    [(sentence,)] = rows(database, "SELECT sentence FROM weir.troubles")
    assert sentence.startswith(f"There is work for weir_{job}, and no run began since 20")
    job_ran(database, job)
    assert wrong(database) == []


def test_jobs_that_a_person_runs_from_time_to_time_are_told_after_a_week(
    database: Database, test_database: TestDatabase
) -> None:
    server_started(test_database, "20 days")
    lane = Lane.made(database, 1, name="shop/orders")
    lane.append({"0.0": 3})
    run(database, "UPDATE transaction SET clock = clock - 7 * 86400000000")
    job_ran(database, "upkeep", "stream_cuts", hours=7 * 24 + 2, by_hand=True)
    run(database, "UPDATE transaction SET clock = clock + 2 * 3600000000")
    assert wrong(database) == []
    run(database, "UPDATE transaction SET clock = clock - 3 * 3600000000")
    assert wrong(database) == [("amber", "not run", "weir")]
    job_ran(database, "upkeep", "stream_cuts", hours=30, by_hand=True)
    lane.append({"0.0": 3})
    run(
        database,
        "UPDATE transaction SET clock = clock - 28 * 3600000000 WHERE transaction_number = 2",
    )
    assert wrong(database) == []


def test_many_runs_that_failed_hide_nothing_else(
    client: TestClient, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(now, "MOST", 3)
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane, name="totals")
    lane.append({"0.0": 3})
    older(database, group)
    for minute in range(5):
        ran(database, f"shop_{minute}", "monday", "failed", error="no.")
    answer = told(client, "now")
    assert sorted(one["kind"] for one in answer["troubles"]) == ["no reader"] + ["run failed"] * 2
    assert answer["more"]


def test_a_run_without_a_sign_of_life_is_stuck(database: Database) -> None:
    task = RunId("shop", "monday", "process")
    database.transaction(lambda c: record_start(c, task, "process", {}))
    run(database, "UPDATE job_run SET updated_at = updated_at - interval '3 minutes'")
    assert wrong(database) == [("red", "run stuck", "shop/process")]
    run(database, "UPDATE job_run SET updated_at = clock_timestamp()")
    assert wrong(database) == []


def test_a_disk_that_upkeep_found_nearly_full_is_told(database: Database) -> None:
    def found(free: int) -> None:
        task = RunId("weir_upkeep", str(free), "upkeep")
        disks = [{"root": "/data/warehouse", "free": free, "size": 1000}]
        database.transaction(lambda c: record_start(c, task, "upkeep", {}))
        database.transaction(lambda c: record_end(c, task, "succeeded", report={"disks": disks}))

    for free, kept in ((500, []), (99, ["amber"]), (20, ["red"]), (500, [])):
        found(free)
        assert [severity for severity, _, _ in wrong(database)] == kept
    found(20)
    [(sentence,)] = rows(database, "SELECT sentence FROM weir.troubles")
    assert sentence == "The disk of /data/warehouse has 2 % left."


def test_a_transaction_that_stays_open_is_told_to_who_may_see_it(
    database: Database, test_database: TestDatabase
) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    with psycopg2.connect(test_database.owner_dsn) as other, other.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id(), pg_backend_pid()")
        [(_, pid)] = cursor.fetchall()
        lane.append({"0.0": 1})
        assert wrong(database) == []
        run(database, "UPDATE transaction SET clock = clock - 120 * 1000000")
        [(severity, kind, who)] = wrong(database)
        assert (severity, kind) == ("amber", "old transaction")
        assert who.startswith(f"session {pid} of ")
        [(advice,)] = rows(database, "SELECT advice FROM weir.troubles")
        assert f"pg_terminate_backend({pid})" in advice
    other.close()
    assert wrong(database) == []


def test_clocks_that_were_ahead_are_told_once(database: Database) -> None:
    for _ in range(3):
        Lane.made(database)
    run(database, "UPDATE stream SET retained_at = clock_timestamp() + interval '1 hour'")
    assert wrong(database) == [("amber", "clock ahead", "clock")]
    run(database, "UPDATE stream SET retained_at = clock_timestamp()")
    assert wrong(database) == []


@pytest.mark.parametrize("severity", ["amber", "red"])
def test_an_hour_that_never_came_is_told_until_it_comes(database: Database, severity: str) -> None:
    lane = Lane.made(database, 1, name="shop/orders", event_time="at")
    database.transaction(
        lambda c: c.exec_driver_sql("SELECT watch_streams('airflow', '{hours}', '{shop/orders}')")
    )
    assert wrong(database) == []
    hours = 4 if severity == "amber" else 40
    run(database, f"UPDATE watch SET since = since - interval '{hours} hours'")
    assert wrong(database) == [(severity, "hours missing", "shop/orders")]
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    run(
        database,
        "UPDATE stream SET complete_until = time_clock(:at) WHERE stream_id = :s",
        at=now - timedelta(hours=1),
        s=lane.stream_id,
    )
    assert wrong(database) == []


def test_an_airflow_that_is_not_told_of_a_commit_is_named(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    watched = "SELECT watch_streams('airflow', '{events}', '{shop/orders}')"
    database.transaction(lambda c: c.exec_driver_sql(watched))
    lane.append({"0.0": 3})
    assert wrong(database) == [], "it is told within seconds"
    run(database, "UPDATE transaction SET clock = clock - 2 * 3600000000")
    kept = [("amber", "not announced", "airflow")]
    assert wrong(database) == kept
    run(database, "UPDATE watch SET seen_at = seen_at - interval '2 days'")
    assert wrong(database) == kept, "its triggerer may be down"
    database.transaction(lambda c: c.exec_driver_sql(watched.replace("orders", "returns")))
    assert wrong(database) == [], "it wants another stream: somebody has paused the DAG"
    database.transaction(lambda c: c.exec_driver_sql(watched))
    assert wrong(database) == kept
    run(database, "DELETE FROM announcement")
    assert wrong(database) == []


def test_an_airflow_that_is_not_told_what_is_complete_is_named(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    watched = "SELECT watch_streams('airflow', '{hours}', '{shop/orders}')"
    database.transaction(lambda c: c.exec_driver_sql(watched))
    for hours in (0, 2):
        assert wrong(database) == [], "it is told within seconds"
        run(
            database,
            "INSERT INTO announcement (airflow, kind, stream_name, stream_id, transaction_number) "
            f"SELECT 'airflow', 'hours', 'shop/orders', :s, {hours} * 3600000000 - now_clock()",
            s=lane.stream_id,
        )
    assert wrong(database) == [("amber", "not announced", "airflow")]


def test_an_airflow_that_is_told_nothing_is_one_line(
    client: TestClient, database: Database
) -> None:
    for stream in ("orders", "returns"):
        lane = Lane.made(database, 1, name=f"shop/{stream}")
        watched = f"SELECT watch_streams('airflow', '{{events}}', '{{shop/{stream}}}')"
        database.transaction(lambda c, w=watched: c.exec_driver_sql(w))  # type: ignore[misc]
        lane.append({"0.0": 3})
        run(database, "UPDATE transaction SET clock = clock - 2 * 3600000000")
        [one] = told(client, "now")["troubles"]
        assert one["query"] == {"name": "shop/orders"}
    assert (one["subject"], one["stream"]) == ("airflow", None)
    assert one["sentence"] == (
        "Airflow 'airflow' is not told what comes to 2 streams; the first is shop/orders."
    )


def test_damage_and_a_publication_that_fails_are_told(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders", publish="iceberg")
    lane.append({"0.0": 1})
    assert wrong(database) == []
    run(
        database,
        "INSERT INTO publication (stream_id, number, problem) VALUES (:s, 1, 'no room.')",
        s=lane.stream_id,
    )
    run(
        database,
        "INSERT INTO found_damage (stream_id, path, kind, what) VALUES (:s, 'p', 'size', 'less')",
        s=lane.stream_id,
    )
    assert [(one, kind) for one, kind, _ in wrong(database)] == [
        ("red", "damage"),
        ("red", "not published"),
    ]


def test_events_that_a_group_lost_are_told_until_the_group_is_gone(database: Database) -> None:
    lane = Lane.made(database, 1, name="shop/orders")
    Group.made(lane, name="totals")
    run(
        database,
        "INSERT INTO retention_decision (stream_id, stream_name, decided_at, rule, reason, head, "
        "held_by, lost, events, bytes) VALUES (:s, 'shop/orders', clock_timestamp(), 'max_age', "
        "'too old', '{}', '{}', '{\"totals\": 7}', 7, 7)",
        s=lane.stream_id,
    )
    assert wrong(database) == [("red", "lost", "shop/orders totals")]
    delete_reader_group(database, "totals", request_id="delete")
    assert wrong(database) == []
    Group.made(lane, name="totals")
    assert wrong(database) == [], "it is another group"


def test_of_runs_only_those_of_dags_that_one_may_see_are_told(
    database: Database, settings: Settings
) -> None:
    for dag in ("shop", "secret"):
        ran(database, dag, "monday", "failed", error="no.")
    access = Access(lambda _: settings, anybody, anybody, anybody, dags=lambda: {"shop"})
    with TestClient(create_app(access)) as client:
        [one] = told(client, "now")["troubles"]
        icon = client.get("now.svg").text
    assert one["query"]["dag_id"] == "shop"
    assert ">1</text>" in icon
    stranger = TestClient(create_app(Access(nobody, nobody, nobody, nobody)))
    assert "</text>" not in stranger.get("now.svg").text


@pytest.mark.server
def test_one_begins_with_what_is_wrong_and_goes_to_where_it_is_mended(
    page: Page, served: Served, database: Database
) -> None:
    page.goto(served.address)
    expect(page.locator("main")).to_contain_text("Nothing is wrong.")
    expect(page.locator(".count")).to_be_hidden()
    look(page, "now-well")
    lane = Lane.made(database, 1, name="shop/orders")
    group = Group.made(lane, name="totals")
    late = Group.made(lane, name="late")
    lane.append({"0.0": 98_000})
    group.reader().must_open()
    run(database, "UPDATE reader SET lease_until = '-infinity'")
    older(database, late)
    ran(
        database, "shop_totals", "scheduled__2026-11-28T00:00:00+00:00", "failed", "totals",
        "function shop:totals raised KeyError: 'price'; mend it, and clear the task.",
    )  # fmt: skip
    page.reload()
    expect(page.locator(".trouble")).to_have_count(3)
    expect(page.locator(".count.red")).to_have_text("3")
    expect(page.locator(".trouble").first).to_contain_text("died over 98,000 events")
    look(page, "now")
    page.get_by_role("link", name="Reader groups", exact=True).click()
    expect(page.locator(".health.bad")).to_have_count(1)
    expect(page.locator(".health.warn")).to_have_count(1)
    expect(page.locator(".count.red")).to_have_text("3")
    look(page, "now-groups")
    page.get_by_role("link", name="Weir").click()
    page.locator(".trouble.bad").first.get_by_role("link", name="The reader group").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("totals")
    page.go_back()
    page.get_by_role("link", name="Process").first.click()
    expect(page.locator("main")).to_contain_text("totals")
