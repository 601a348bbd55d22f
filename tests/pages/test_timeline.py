"""Streams, groups and owners over time: what was recorded is what a count over the commits says."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Page, expect

from tests.chance import cases, random_for
from tests.conftest import TestDatabase
from tests.pages.conftest import Served, look, told
from tests.world import streams
from tests.world.groups import Group
from tests.world.past import pass_hours
from tests.world.streams import Lane, rows, run
from weir.database.connection import Database
from weir.pages.timeline import POINTS, rates_of, span_of
from weir.reader_groups.history import keep_history, record_groups
from weir.retention.capture import capture
from weir.retention.run import retain

NOW = datetime(2026, 11, 26, 12, 34, 56, tzinfo=UTC)


@pytest.fixture
def owner(test_database: TestDatabase) -> Iterator[Database]:
    """Yield the database as its owner, who may change when what was."""
    opened = Database(test_database.owner_dsn, patience=10.0, connect_patience=10.0)
    yield opened
    opened.dispose()


# What groups have not read, and whether all that lies behind their positions is still there.
_UNREAD = """SELECT sum(unread_events), sum(unread_bytes),
    bool_and(unread_events = t.events - p.events)
FROM lag l, size_till(l.stream_id, position) p, size_till(l.stream_id, tail_cut(l.stream_id)) t"""


class Seen(NamedTuple):
    """What there was after some changes, which were made between two times."""

    begun: datetime
    ended: datetime
    kept: dict[str, int]
    unread: int
    unread_bytes: int | None


@pytest.mark.parametrize("case", range(cases(8, least=2)))
def test_lines_are_what_a_count_over_the_commits_says(
    client: TestClient, database: Database, owner: Database, monkeypatch: pytest.MonkeyPatch,
    case: int,
) -> None:  # fmt: skip
    random = random_for("timeline", case)
    lanes = [Lane.made(database, 2), Lane.made(database, 1)]
    group = Group.made(*lanes, on_gap="skip")
    reader = group.reader()
    hours = 0
    seen: list[Seen] = []
    for _ in range(12):
        begun = datetime.now(UTC) + timedelta(hours=hours)
        for lane in lanes:
            if random.random() < 0.6:
                monkeypatch.setattr(streams, "BYTES_PER_EVENT", random.randint(1, 50))
                lane.append({one: random.randint(1, 20) for one in lane.active()})
            if random.random() < 0.2:
                lane.scale(random.choice(lane.active()), parts=2)
        capture(database)
        if (what := random.random()) < 0.6 and (batch := reader.open(random.randint(1, 40))):
            reader.commit(batch)
            record_groups(database, [group.name])
        elif what > 0.9:
            [[tail]] = rows(database, "SELECT tail_cut(:s)", s=lanes[0].stream_id)
            lanes[0].truncate(json.dumps(tail))
        kept = {r.stream: r.bytes_retained for r in rows(database, "SELECT * FROM streams")}
        [[unread, unread_bytes, whole]] = rows(database, _UNREAD)
        ended = datetime.now(UTC) + timedelta(hours=hours)
        seen.append(Seen(begun, ended, kept, unread, unread_bytes if whole else None))
        passes = random.randint(1, 4)
        pass_hours(owner, passes)
        hours += passes
    names = [str(lane.name) for lane in lanes]
    found = told(client, "time", of=",".join([*names, group.name]), hours=hours)
    at = [datetime.fromisoformat(one) for one in found["at"]]
    assert found["step"] in (300, 600, 3600)
    past = timedelta(hours=hours)
    seen = [one._replace(begun=one.begun - past, ended=one.ended - past) for one in seen]
    # At a time within some changes, what is recorded is of before them or of between them.
    then = [
        (i, [one for one in seen if one.ended < t][-1])
        for i, t in enumerate(at)
        if i and t > seen[0].ended and not any(one.begun <= t <= one.ended for one in seen)
    ]
    assert then
    for line in found["streams"]:
        assert [line["kept"][i] for i, _ in then] == [one.kept[line["stream"]] for _, one in then]
        _check_rates(database, line, at)
    [line] = found["groups"]
    for i, one in then:  # also before its first move
        assert line["unread"][i] == one.unread, at[i]
        assert one.unread_bytes in (None, line["unread_bytes"][i]), at[i]


def _check_rates(database: Database, line: dict[str, Any], at: list[datetime]) -> None:
    """Compare the rates of a stream with its commits between the cuts that were recorded."""
    of = {"s": line["stream"]}
    commits = rows(
        database, "SELECT clock, events, bytes FROM transactions WHERE stream = :s", **of
    )
    cuts = [one.recorded_at for one in rows(
        database, "SELECT recorded_at FROM retention_set WHERE stream = :s ORDER BY 1", **of
    )]  # fmt: skip
    [[last]] = rows(database, "SELECT last_clock FROM stream_state WHERE stream = :s", **of)
    # What was recorded after the last whole part of time is known only by what is there now.
    known = [*(one for one in (*cuts, last) if one <= at[-2]), at[-1]]
    looked = 0
    for i in range(len(at) - 3):  # what is too short for a rate belongs to the part before it
        middle = at[i] + (at[i + 1] - at[i]) / 2
        since = max((one for one in known if one <= middle), default=None)
        until = min(one for one in known if one > middle)
        if since is None:
            continue
        for what in ("events", "bytes"):
            came = sum(getattr(one, what) for one in commits if since < one.clock <= until)
            rate = came / (until - since).total_seconds()
            assert line[what][i] == pytest.approx(rate), (i, what)
        looked += 1
    assert looked


def test_a_stream_and_a_group_that_rest_are_known_after_their_rows_are_pruned(
    client: TestClient, database: Database, owner: Database
) -> None:
    lane = Lane.made(database, 1)
    group = Group.made(lane)
    lane.append({"0.0": 10})
    group.reader().read_all()
    lane.append({"0.0": 4})
    capture(database)
    record_groups(database, [group.name])
    pass_hours(owner, 26)
    lane.append({"0.0": 1})
    assert keep_history(database) == 2  # of five minutes, which are kept for a day
    run(database, "UPDATE stream_history SET slot = slot - interval '40 days' WHERE grain = 3600")
    assert keep_history(database) == 0  # once a day
    run(database, "UPDATE stream_history SET slot = slot + interval '40 days' WHERE grain = 3600")
    capture(database)
    pass_hours(owner, 2)
    found = told(client, "time", of=f"{lane.name},{group.name}", hours=12)
    assert (found["step"], found["streams"][0]["kept"][0]) == (300, 140)
    assert found["streams"][0]["kept"][-1] == 150
    [line] = found["groups"]
    assert (line["unread"][0], line["unread"][-1]) == (4, 5)
    pass_hours(owner, 24 * 40)
    assert keep_history(database) == 5  # the others of five minutes and hours, and of an owner's
    [line] = told(client, "time", of=group.name, hours=24 * 60)["groups"]
    assert (line["unread"][-3], line["read"][-3]) == (5, 0)


def test_a_forecast_ends_when_the_group_has_caught_up_at_its_newest_rates(
    client: TestClient, database: Database
) -> None:
    lane = Lane.made(database, 1)
    group = Group.made(lane)
    lane.append({"0.0": 60_000})
    reader = group.reader()
    reader.read_all()
    lane.append({"0.0": 40_000})
    [line] = told(client, "time", of=group.name)["groups"]
    [pace] = group.rows("SELECT * FROM catch_up WHERE reader_group = :n", n=group.name)
    first, last = line["forecast"]
    assert first["value"] == 40_000
    if pace.catch_up is None:  # it read more slowly than was appended
        assert (last["value"] > 40_000, line["caught_up_at"]) == (True, None)
    else:
        assert (last["value"], last["at"]) == (0, line["caught_up_at"])
    run(database, "UPDATE reader_batch SET committed_at = committed_at - interval '2 hours'")
    [line] = told(client, "time", of=group.name)["groups"]
    assert line["caught_up_at"] is None
    assert line["forecast"][1]["value"] > 40_000  # as it reads nothing, and something is appended
    reader.read_all()
    assert told(client, "time", of=group.name)["groups"][0]["forecast"] == []


def test_what_goes_tonight_and_in_a_week_is_what_retention_then_decides(
    client: TestClient, database: Database, owner: Database
) -> None:
    day = 86400
    lane = Lane.made(database, 1, retention="age", retain_max_age=3 * day)
    for _ in range(8):
        lane.append({"0.0": 5})
        capture(database)
        pass_hours(owner, 10)
    retain(database)
    [line] = told(client, "time", of=str(lane.name), hours=96)["streams"]
    tonight, week = line["goes"]
    kept = line["kept"][-1]
    assert week["bytes"] == kept
    assert 0 <= tonight["bytes"] < week["bytes"]
    [due] = told(client, "retention", days=7)["decisions"]
    assert (due["bytes"], due["rule"]) == (week["bytes"], "max_age")
    ahead = datetime.fromisoformat(week["at"]) - datetime.now(UTC)
    pass_hours(owner, int(ahead.total_seconds() // 3600) + 1)
    [report] = retain(database)
    assert report["bytes"] == week["bytes"]


def test_owners_have_what_their_streams_kept(
    client: TestClient, database: Database, owner: Database
) -> None:
    lanes = [Lane.made(database, 1), Lane.made(database, 1)]
    lanes[0].append({"0.0": 3})
    keep_history(database)
    pass_hours(owner, 2)
    lanes[1].append({"0.0": 4})
    keep_history(database)
    found = told(client, "time/owners", hours=48)
    [line] = found["owners"]
    assert (line["owner"], line["streams"], line["bytes"]) == (None, 2, [30, 70])
    assert len(found["at"]) == 2


def test_without_names_those_that_moved_last_are_shown(
    client: TestClient, database: Database
) -> None:
    lanes = [Lane.made(database, 1) for _ in range(6)]
    lanes[2].append({"0.0": 1})
    found = told(client, "time")
    assert len(found["streams"]) == 4
    assert str(lanes[2].name) in [one["stream"] for one in found["streams"]]
    answer = client.get("/api/time", params={"of": "no/such"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "stream_not_found")
    many = ",".join(f"a/s{i}" for i in range(9))
    assert client.get("/api/time", params={"of": many}).status_code == 400


def test_a_time_of_which_nothing_can_be_recorded_is_refused(client: TestClient) -> None:
    for until in ("0001-01-01T00:00:00Z", "2001-01-01T00:00:00"):
        answer = client.get(f"/api/time?until={until}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (400, "argument_invalid")
    assert client.get("/api/time?until=9999-12-31T23:59:59-23:00").status_code == 200, "is now"


def test_a_line_has_whole_parts_of_time_and_few_points() -> None:
    day = span_of(NOW, 300, 24, None)
    assert (day.step, len(day.times), day.edges[-1]) == (600, 144, NOW)
    assert day.times[-1] == datetime(2026, 11, 26, 12, 20, tzinfo=UTC)
    past = span_of(NOW, 3600, 48, NOW - timedelta(days=1))
    assert (past.step, past.edges[-1], past.now) == (
        3600, datetime(2026, 11, 25, 12, tzinfo=UTC), None
    )  # fmt: skip
    assert past.edges[0] == datetime(2026, 11, 23, 12, tzinfo=UTC)
    assert len(span_of(NOW, 300, 24, None, pairs=1000).times) <= 13
    assert len(span_of(NOW, 3600, 720, None).edges) <= POINTS + 1


def test_a_rate_is_that_between_two_records() -> None:
    at = [NOW + timedelta(seconds=10 * i) for i in range(6)]
    recorded = [None, at[0], at[0], at[2], None, at[4]]
    assert rates_of(at, recorded, [None, 0, 0, 40, None, 20]) == [2.0, 2.0, 0.0, 0.0, None, None]


# What charts write at their axes of time, each canvas by itself.
_LABELS = """const write = CanvasRenderingContext2D.prototype.fillText;
window.labels = new Map();
CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
  const mine = window.labels.get(this.canvas) ?? new Map();
  window.labels.set(this.canvas, mine.set(where.map(Math.round).join(), text));
  return write.call(this, text, ...where);
};"""
_TIMES = """() => [...window.labels].filter(([canvas]) => canvas.isConnected).map(([, all]) =>
  [...all.values()].filter((one) => /^\\d\\d[:-]\\d\\d/.test(one)))"""


@pytest.mark.server
def test_the_chart_has_lines_and_what_is_foretold_and_no_label_twice(
    page: Page, served: Served, database: Database, owner: Database
) -> None:
    lanes = [
        Lane.made(database, 2, name=f"shop/{name}", retention="age", retain_max_age=3600)
        for name in ("orders", "refunds")
    ]
    group = Group.made(*lanes, name="totals")
    reader = group.reader()
    for i in range(8):
        lanes[0].append({"0.0": 900 + 70 * (i % 3)})
        lanes[1].append({"1.0": 300 + 40 * i})
        capture(database)
        if i % 2 and (batch := reader.open(700)):
            reader.commit(batch)
            record_groups(database, [group.name])
        keep_history(database)
        pass_hours(owner, 3)
    lanes[0].append({"0.0": 50})
    page.add_init_script(_LABELS)
    page.goto(f"{served.address}/streams")
    expect(page.locator("tbody tr").first).to_contain_text("in the last")
    page.get_by_role("link", name="Over time").click()
    expect(page.get_by_role("heading", name="Events appended per second")).to_be_visible()
    expect(page.locator(".chart").first).to_have_attribute("aria-label", re.compile("shop/refunds"))
    expect(page.locator(".u-legend").first).to_contain_text("shop/orders")
    expect(page.locator("main")).not_to_contain_text("--")
    expect(page.locator(".scroll tbody tr", has_text="shop/orders").first).to_contain_text(
        "maximum age"
    )
    look(page, "time-appended")
    page.get_by_label("What is shown").select_option("kept")
    expect(page.locator(".u-legend").first).to_contain_text("shop/orders, foretold")
    page.get_by_label("How long a time").select_option("168")
    expect(page.get_by_role("heading", name="Bytes kept, by owner")).to_be_visible()
    look(page, "time-kept")
    page.get_by_label("What is shown").select_option("unread")
    page.get_by_label("How long a time").select_option("24")
    expect(page.locator(".u-legend").first).to_contain_text("totals, foretold")
    expect(page.locator("main")).to_contain_text("at the rates of the last hour")
    look(page, "time")
    for labels in page.evaluate(_TIMES):
        assert len(labels) == len(set(labels)), labels
    assert "show=unread" in page.url
    page.get_by_label("What is shown").select_option("lag")
    expect(page.locator(".chart").first).to_have_attribute("aria-label", re.compile(r"totals .*kB"))
    page.get_by_label("What is shown").select_option("kept")
    page.get_by_role("link", name="in a week").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_label("When")).to_have_value("7")
    look(page, "retention-week")
    page.goto(f"{served.address}/group?name=totals")
    expect(page.locator(".facts")).to_contain_text("in the last hour it read")
    look(page, "group-hour")
