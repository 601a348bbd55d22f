"""The map of a stream, against commits, segments and positions counted one by one."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from random import Random

import pytest
from sqlalchemy import event

from tests.chance import cases, random_for
from tests.raises import raises
from tests.world.groups import Group
from tests.world.streams import Lane, run
from weir.database.connection import Database
from weir.model.clock import clock_time, to_clock
from weir.model.segment import segment_name
from weir.pages import stream_map as module
from weir.pages.stream_map import GRID, GROUPS, LINE, MARKS, MOST, PART, KeyMap, Point, key_map
from weir.retention.capture import capture


def mapped(
    lane: Lane, since: int | None = None, until: int | None = None, width: int = 1000
) -> KeyMap:
    return lane.database.snapshot(lambda c: key_map(c, lane.name, since, until, width))


def grown(database: Database, random: Random) -> tuple[Lane, list[Group]]:
    """Return a stream that was appended to, scaled and rolled at random, and its groups."""
    lane = Lane.made(database, random.randint(1, 3))
    groups = [Group.made(lane) for _ in range(2)]
    for _ in range(25):
        active = lane.active()
        what = random.random()
        if what < 0.6:
            lane.append({one: random.randint(1, 50) for one in active if random.random() < 0.7})
        elif what < 0.75:
            lane.scale(random.choice(active), parts=random.randint(2, 3))
        elif what < 0.8 and len(active) > 1:
            at = random.randrange(len(active) - 1)
            lane.scale(*active[at : at + 2], parts=1)
        elif what < 0.85:
            late, sealed = lane.opened(), random.choice(active)
            lane.scale(sealed, parts=2)
            lane.commit(late, {sealed: 9})
        else:
            reader = random.choice(groups).reader()
            if batch := reader.open(random.randint(1, 60)):
                reader.commit(batch)
    return lane, groups


class Counted:
    """What was committed, of which segments until the end of a map, one row at a time."""

    def __init__(self, lane: Lane, of: KeyMap) -> None:
        self.segments = {
            row.segment_id: row
            for row in lane.rows(
                """SELECT g.*, e.created_at AS begins, coalesce(g.sealed_clock, :last) AS ends
                FROM segment g JOIN epoch e ON e.stream_id = g.stream_id
                    AND e.epoch = g.creation_epoch WHERE g.stream_id = :s""",
                last=to_clock(of.until),  # not what is the next minute by now
            )
        }
        self.commits: dict[int, list[tuple[int, int]]] = defaultdict(list)  # (clock, events so far)
        for row in lane.rows(
            """SELECT segment_id, clock, start_offset + events AS past
            FROM commits_between(:s, 0, 9223372036854775807) ORDER BY segment_id, clock"""
        ):
            self.commits[row.segment_id].append((row.clock, row.past))

    def had(self, segment_id: int, clock: float) -> int:
        """Return the events of a segment that were committed by a time."""
        return max((past for at, past in self.commits[segment_id] if at <= clock), default=0)

    def spread(self, segment_id: int, times: Sequence[int], clock: float) -> float:
        """Return the same if the events came evenly between what is known: the last commit by each
        of the times, and the first one after them."""
        commits = self.commits[segment_id]
        known = {max((one for one in commits if one[0] <= at), default=None) for at in times}
        known.add(min((one for one in commits if one[0] > times[-1]), default=None))
        points = [(self.segments[segment_id].begins, 0), *sorted(one for one in known if one)]
        after = bisect_left(points, (clock, 0))
        if after in (0, len(points)):
            return points[-1][1] if after else 0
        (left, low), (right, high) = points[after - 1 : after + 1]
        return float(low + (high - low) * (clock - left) / (right - left))


def drawn(random: Random, lane: Lane) -> tuple[KeyMap, int]:
    """Return the map of a random part of the time, and its width."""
    whole = mapped(lane)
    [[last]] = lane.rows("SELECT last_clock FROM stream WHERE stream_id = :s")
    low, high = sorted(random.sample(range(to_clock(whole.since), last), 2))
    since, until = random.choice([(None, None), (low, None), (None, high), (low, high)])
    width = random.choice([100, 400])
    return mapped(lane, since, until, width), width


@pytest.mark.parametrize("case", range(cases(16, least=2)))
def test_each_part_of_a_segment_has_what_came_to_it(database: Database, case: int) -> None:
    random = random_for("segments", case)
    lane, _ = grown(database, random)
    of, width = drawn(random, lane)
    counted = Counted(lane, of)
    since, until = to_clock(of.since), to_clock(of.until)
    lived = {i: g for i, g in counted.segments.items() if g.begins < until and g.ends > since}
    assert sorted(segment_name(i) for i in lived) == sorted(str(one.segment) for one in of.areas)
    length = sum(min(g.ends, until) - max(g.begins, since) for g in lived.values())
    parts = (MOST - 2 * len(lived)) * (until - since) // length
    apart = -(-(until - since) // min(parts, width // PART))
    assert sum(len(one.parts) for one in of.areas) <= MOST
    for one in of.areas:
        [(at, segment)] = [(i, g) for i, g in lived.items() if segment_name(i) == one.segment]
        assert (one.key_low, one.key_high) == (segment.key_low, segment.key_high)
        assert one.events == counted.had(at, 2**62)
        begin, end = max(segment.begins, since), min(segment.ends, until)
        asked = [b for b in range(since, end, apart) if b >= segment.begins] + [end]
        told = 0.0
        for part in one.parts:
            times = to_clock(part.since), to_clock(part.until)
            came = [counted.spread(at, asked, clock) for clock in times]
            assert part.events == pytest.approx(came[1] - came[0], abs=1e-3)
            told += part.events
        came = [counted.spread(at, asked, clock) for clock in (begin, end)]
        assert told == pytest.approx(came[1] - came[0], abs=1e-2)


@pytest.mark.parametrize("case", range(cases(16, least=2)))
def test_each_part_of_a_row_has_its_share_of_what_came_to_its_segments(
    database: Database, monkeypatch: pytest.MonkeyPatch, case: int
) -> None:
    random = random_for("rows", case)
    lane, _ = grown(database, random)
    monkeypatch.setattr(module, "FEW", 0)
    of, width = drawn(random, lane)
    counted = Counted(lane, of)
    since, until = to_clock(of.since), to_clock(of.until)
    apart = -(-(until - since) // min(MOST // GRID, width // PART))
    expected: dict[tuple[int, int], float] = defaultdict(float)
    for at, segment in counted.segments.items():
        for row in range(GRID):
            low, high = max(segment.key_low, row / GRID), min(segment.key_high, (row + 1) / GRID)
            if low < high:
                share = (high - low) / (segment.key_high - segment.key_low)
                for begin in range(since, until, apart):
                    end = min(begin + apart, until)
                    came = counted.had(at, end) - counted.had(at, begin)
                    if came:
                        expected[row, begin] += came * share
    told = {
        (round(one.key_low * GRID), to_clock(part.since)): part.events
        for one in of.areas
        for part in one.parts
    }
    assert told == pytest.approx(dict(expected), abs=1e-5)
    assert [one.key_low for one in of.areas] == [row / GRID for row in range(GRID)]


@pytest.mark.parametrize("case", range(cases(8, least=2)))
def test_a_line_is_where_the_last_event_before_it_was_committed(
    database: Database, case: int
) -> None:
    random = random_for("lines", case)
    lane, groups = grown(database, random)
    of = mapped(lane)
    counted = Counted(lane, of)
    assert [one.reader_group for one in of.lines] == [None, *sorted(one.name for one in groups)]
    for line in of.lines[1:]:
        [group] = [one for one in groups if one.name == line.reader_group]
        places = []
        for name, (state, offset, _) in group.states(lane).items():
            [(at, segment)] = [
                (i, g) for i, g in counted.segments.items() if segment_name(i) == name
            ]
            clock = segment.begins
            if offset == counted.had(at, 2**62) and offset:
                clock = segment.ends
            elif offset:
                clock = next(clock for clock, past in counted.commits[at] if past >= offset)
            places.append((state == "future", clock, segment))
        for part in range(LINE):
            low, high = part / LINE, (part + 1) / LINE
            here = [
                (future, at) for future, at, g in places if g.key_low < high and g.key_high > low
            ]
            present = [at for future, at in here if not future] or [at for _, at in here]
            [point] = [p for p in line.points if p.key_low <= low and high <= p.key_high]
            assert point.at == clock_time(min(present))


def test_changes_and_the_head_are_where_they_were_made(database: Database) -> None:
    lane = Lane.made(database, 2)
    lane.append({"0.0": 10, "1.0": 20})
    capture(database)
    lane.scale("0.0", parts=2)
    late = lane.opened()
    lane.scale("1.0", parts=2)
    lane.commit(late, {"1.0": 5})
    lane.append({lane.active()[0]: 4})
    lane.truncate('{"0.0": 10, "1.0": 0}')
    of = mapped(lane)
    kinds = [one.kind for one in of.marks for _ in range(one.number)]
    assert kinds == ["cut", "scale", "scale", "roll", "roll"]
    areas = {one.segment: one for one in of.areas}
    sealed, rest = of.lines[0].points
    assert sealed == Point(0, 0.5, areas["0.0"].until)
    assert rest == Point(0.5, 1, areas["1.0"].since)


def test_a_stream_without_events_is_one_empty_segment(database: Database) -> None:
    lane = Lane.made(database, 1)
    [area] = mapped(lane).areas
    assert (area.segment, area.events, area.parts) == ("0.0", 0, [])


def test_times_without_history_are_refused(database: Database) -> None:
    lane = Lane.made(database, 1)
    with raises("time_invalid nothing"):
        mapped(lane, until=1)


def test_very_many_segments_share_a_bounded_answer_by_as_many_statements(
    database: Database,
) -> None:
    sent: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *s: sent.append(s[2]))
    few = Lane.made(database, 1)
    few.append({"0.0": 1})
    sent.clear()
    mapped(few)
    statements = len(sent)
    lane = Lane.made(database, 1)
    lane.append({"0.0": 100})
    # Sealed segments of the same epoch, which tile the key space once more, and changes.
    run(
        database,
        """INSERT INTO segment (stream_id, stream_name, segment_id, key_low, key_high,
            sealed_epoch, sealed_clock, events, bytes)
        SELECT stream_id, stream_name, i, (i - 1) / 5000.0, i / 5000.0, 1,
            now_clock(), 3, 30
        FROM segment CROSS JOIN generate_series(1, 5000) i WHERE stream_id = :s""",
        s=lane.stream_id,
    )
    run(
        database,
        """INSERT INTO epoch (stream_id, stream_name, epoch, reference_epoch, created_at, cause,
            request_id)
        SELECT stream_id, stream_name, i, i, created_at + i * 1000, 'scale', ''
        FROM epoch CROSS JOIN generate_series(1, 5000) i WHERE stream_id = :s""",
        s=lane.stream_id,
    )
    for _ in range(GROUPS + 1):
        Group.made(lane)
    sent.clear()
    of = mapped(lane, width=10_000)
    assert len(sent) == statements
    assert len(of.areas) == GRID
    assert sum(len(one.parts) for one in of.areas) <= MOST
    assert len(of.marks) <= 4 * (MARKS + 1)
    assert len(of.lines) == 1 + GROUPS
    assert sum(one.segments for one in of.areas) == 5000 + GRID
    assert sum(one.events for one in of.areas) == pytest.approx(15_100)
