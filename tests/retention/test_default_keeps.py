"""The first day of a user who leaves all settings as they are, with all periodic jobs run."""

from pathlib import Path
from typing import Any

from spark_jobs import checkpoints, retention, upkeep
from tests.raises import raises
from tests.retention.test_retention_job import submitted
from tests.world.groups import Group
from tests.world.retention import DAY, consume, decide, pass_time, write_files
from tests.world.streams import Lane, rows, unique, while_held
from weir.controller.locks import lock_streams
from weir.controller.streams import create_stream
from weir.database.connection import Database
from weir.model.group_configuration import GroupConfiguration
from weir.model.names import stream_name
from weir.operations.form import parse
from weir.operations.group_forms import CreateReaderGroup
from weir.operations.stream_forms import CreateStream
from weir.reader_groups.groups.lifecycle import create_in, create_reader_group
from weir.reader_groups.groups.reset import reset_reader_group
from weir.reader_groups.starting_points import find_cuts
from weir.retention.capture import capture

HOUR = 3_600


def ordered(database: Database, warehouse: Path) -> Lane:
    """The stream of the README, as its form makes it, with a file of each of three appends."""
    form = parse(CreateStream, {"stream": "shop/orders", "routing_key": "customer"})
    made = create_stream(
        database, stream_name(form.stream), segments=form.segments, request_id=unique("create"),
        **form.configuration.__dict__,
    )  # fmt: skip
    assert made["deletes"] == ["stream shop/orders keeps everything (its retention is keep)"]
    lane = Lane(database, stream_name(form.stream), made["stream_id"])
    for _ in range(3):
        lane.append({"0.0": 200})
    write_files(lane, warehouse)
    return lane


def group(lane: Lane, **given: str) -> Group:
    """A reader group as its form makes it."""
    form = parse(CreateReaderGroup, {
        "reader_group": unique("group"), "streams": [str(lane.name)], **given,
    })  # fmt: skip
    settings: Any = form.asked.settings
    return Group.made(lane, start=form.start, **settings)


def run_all_jobs(database: Database) -> None:
    capture(database)
    for job in (checkpoints, retention, upkeep):
        status, state, _, error = submitted(database, job.run)
        assert (status, state) == (0, "succeeded"), error


def test_hours_and_weeks_later_nothing_is_gone_that_nobody_gave_away(
    database: Database, warehouse: Path
) -> None:
    lane = ordered(database, warehouse)
    totals, audit = group(lane), group(lane)
    run_all_jobs(database)
    consume(totals)
    consume(audit)
    late = group(lane, start="tail")  # a consumer that needs only what comes from now on
    files = sorted(p for p in warehouse.rglob("*") if p.is_file())
    for passed in (HOUR, 8 * DAY, 400 * DAY):
        pass_time(lane, passed)
        run_all_jobs(database)
        assert lane.head() == {"0.0": 0}
    assert sorted(p for p in warehouse.rglob("*") if p.is_file()) == files
    assert rows(database, "SELECT * FROM garbage_files") == []
    assert rows(database, "SELECT * FROM retention_alerts") == []
    [status] = rows(database, "SELECT * FROM retention_status")
    assert status.rule == "keep"
    # The second day: the function was wrong, another consumer comes later, and one is deleted.
    reset_reader_group(
        database, totals.name, "start", allow_repeat=True, request_id=unique("reset")
    )
    assert totals.reader("again").read_all() == [("0.0", 0, 600)]
    assert group(lane).reader().read_all() == [("0.0", 0, 600)]
    assert late.reader().read_all() == []


def test_what_is_consumed_stays_for_a_week_if_its_owner_says_no_more(
    database: Database, warehouse: Path
) -> None:
    form = parse(
        CreateStream, {"stream": "shop/orders", "routing_key": "key", "retention": "consumed"}
    )
    lane = Lane.made(
        database, name=form.stream,
        **{k: v for k, v in form.configuration.__dict__.items() if k != "routing_key"},
    )  # fmt: skip
    lane.append({"0.0": 5, "1.0": 1})
    write_files(lane, warehouse)
    consume(group(lane))
    run_all_jobs(database)
    for passed, left in ((6 * DAY, 6), (2 * DAY, 0)):
        pass_time(lane, passed)
        run_all_jobs(database)
        [stream] = rows(database, "SELECT events_retained FROM streams")
        assert stream.events_retained == left


def test_a_subscriber_that_waited_for_another_one_counts_what_that_one_holds(
    shared_database: Database,
) -> None:
    lane = Lane.made(shared_database, retention="consumed")
    lane.append({"0.0": 4})
    behind = Group.made(lane, subscriber=False)

    def first(connection: object) -> None:
        streams = lock_streams(connection, names=[lane.name])  # type: ignore[arg-type]
        cuts = find_cuts(connection, streams, "head")  # type: ignore[arg-type]
        create_in(
            connection, unique("first"), streams, cuts, {}, GroupConfiguration(),  # type: ignore[arg-type]
        )  # fmt: skip

    def second(start: str) -> list[str]:
        name = unique("second")
        made = create_reader_group(lane.database, name, [lane.name], start=start, request_id=name)
        return list(made["deletes"])

    with raises(f"would_lose_data {behind.name} 4"):
        second("tail")
    said = while_held(lane.database, first, lambda: second("tail"))
    assert "that releases nothing more" in str(said)
    assert decide(lane)["events"] == 0
