"""Everything that SQL and the planner of reads can be asked of what was committed to a stream."""

import json
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from tests.controller.driver import Driver
from tests.controller.model import Cut, as_json
from tests.world.groups import Group
from tests.world.streams import Lane, rows
from weir.annex.back_test.recorded import recorded
from weir.controller.read_plan import newest_slices, slices_by_commit, slices_of_bounds
from weir.controller.recent_files import Part, recent_files


def entries(lane: Lane) -> list[Any]:
    return lane.rows(
        "SELECT * FROM time_indexes WHERE stream = :name ORDER BY clock, segment",
        name=str(lane.name),
    )


class Questions:
    """What can be asked of a stream: with the same seed the same."""

    def __init__(self, driver: Driver, groups: list[Group], random: Random) -> None:
        self.driver, self.lane, self.groups = driver, driver.lane, groups
        self.asked: dict[str, Callable[[], Any]] = {}
        found = self.lane.rows("SELECT clock FROM transaction WHERE stream_id = :s ORDER BY clock")
        known = [row.clock for row in found if row.clock is not None]
        near = [c + step for c in random.sample(known, min(8, len(known))) for step in (-1, 0, 1)]
        clocks = [0, *near, known[-1] + 10**9]
        segments = [s for s in driver.model.segments.values() if s.events]
        self.of_offsets(
            [
                (s.segment_id, o, random.randint(o, len(s.events) + 1))
                for s in random.sample(segments, min(6, len(segments)))
                for o in {0, len(s.events), *(random.randint(0, len(s.events)) for _ in range(6))}
            ]
        )
        self.of_clocks(
            [(c, random.choice(clocks)) for c in clocks], [s.segment_id for s in segments]
        )
        start: Cut = dict.fromkeys(driver.model.epochs[0], 0)
        cuts = [json.dumps(as_json(driver.model.frontier(random, start))) for _ in range(5)]
        self.of_cuts(cuts, random.sample(cuts, len(cuts)))
        self.of_all(known, random)
        for what in ("file", "run", "commit"):
            self.of_budget(what, random)

    def rows(self, sql: str, **given: Any) -> Any:
        return [tuple(row) for row in self.lane.rows(sql, **given)]

    def ask(self, sql: str, **given: Any) -> None:
        self.asked[f"{sql} {given}"] = partial(self.rows, sql, **given)

    def named(self, called: str) -> dict[str, str]:
        return {"name": str(self.lane.name)} if ":name" in called else {}

    def of_offsets(self, places: list[tuple[int, int, int]]) -> None:
        listed = """FROM unnest(CAST(:g AS bigint[]), CAST(:o AS bigint[]), CAST(:past AS bigint[]))
            AS w (g, o, past)"""
        g, o, past = (list(one) for one in zip(*places, strict=True))
        for called in (
            "commit_at(:s, w.g, w.o)", "commit_from(:s, w.g, w.o)", "bytes_before(:s, w.g, w.o)",
            "commits_in(:s, w.g, w.o, w.past)", "writers_of(:s, w.g, w.o, w.past)",
            "commit_of(:name, segment_name(w.g), w.o)",
        ):  # fmt: skip
            self.ask(f"SELECT w.*, to_jsonb(r) {listed} LEFT JOIN LATERAL {called} r ON true "
                     "ORDER BY 1, 2, 3, 4", g=g, o=o, past=past, **self.named(called))  # fmt: skip
        bounds = [place for place in places if place[1] < place[2]]
        for plan in (slices_of_bounds, slices_by_commit):
            self.asked[plan.__name__] = lambda plan=plan: sorted(  # type: ignore[misc]
                self.lane.database.snapshot(lambda c: plan(c, self.lane.stream_id, bounds))
            )

    def of_clocks(self, pairs: list[tuple[int, int]], segments: list[int]) -> None:
        listed = "FROM unnest(CAST(:c AS bigint[]), CAST(:d AS bigint[])) AS w (c, d)"
        c, d = (list(one) for one in zip(*pairs, strict=True))
        each = "CROSS JOIN unnest(CAST(:g AS bigint[])) AS o (g)"
        for called in (
            "commits_between(:s, w.c, w.d)", "commits(:name, clock_time(w.c), clock_time(w.d))",
            "commit_before(:s, w.c)", "commit_after(:s, w.c)",
            "stream_cut_at(:name, clock_time(w.c))", "truncated_after(:s, w.c)",
            "commit_interval(:s, w.c)", "segment_loads(:s, w.c)", f"{each} commit_by(:s, o.g, w.c)",
            f"{each} commits_to(:s, o.g, w.c, w.d)",
        ):  # fmt: skip
            crossed, _, function = called.rpartition(") ") if each in called else ("", "", called)
            self.ask(
                f"SELECT w.*, to_jsonb(r) {listed} {crossed}{')' if crossed else ''} "
                f"LEFT JOIN LATERAL {function} r ON true ORDER BY 1, 2, 3",
                c=c, d=d, **({"g": segments} if crossed else {}),
                **self.named(called),
            )  # fmt: skip
        parts = [Part(self.lane.stream_id, 0.0, 0.7, pairs[1][0])]
        self.asked["recent files"] = lambda: self.lane.database.snapshot(
            lambda c: recent_files(c, parts)
        )

    def of_cuts(self, cuts: list[str], others: list[str]) -> None:
        for called in (
            "size_till(:s, w.a)", "clock_after(:s, w.a)", "clock_between(:s, w.a, w.b)",
            "unread_from(:s, w.a, w.a, NULL)",
        ):  # fmt: skip
            self.ask(
                f"""SELECT w.*, to_jsonb(r) FROM unnest(CAST(:a AS jsonb[]), CAST(:b AS jsonb[]))
                AS w (a, b) LEFT JOIN LATERAL {called} r ON true ORDER BY 1, 2, 3""",
                a=cuts, b=others,
            )  # fmt: skip

    def of_all(self, known: list[int], random: Random) -> None:
        name, database = str(self.lane.name), self.lane.database
        self.asked["time_indexes"] = lambda: entries(self.lane)
        for view in ("streams", "segments", "lag", "unread", "truncations"):
            self.ask(f"SELECT to_jsonb(v) - 'waiting' FROM {view} v WHERE stream = :name "
                     "ORDER BY 1", name=name)  # fmt: skip
        self.ask("SELECT newest_clock(:s)")
        called = ["next_units(false, :s, n, false)", "things_of(false, :s, n)"]
        for one in called:
            self.ask(
                f"""SELECT n, to_jsonb(r) FROM generate_series(1, :many) n
                LEFT JOIN LATERAL {one} r ON true ORDER BY 1, 2""",
                many=min(len(known), 20),
            )
        self.asked["recorded"] = self.shown
        for events in (1, 5, 30):
            self.asked[f"newest {events}"] = lambda n=events: newest(self.lane, n)  # type: ignore[misc]
        for group in self.groups:
            self.asked[f"unread {group.name}"] = lambda g=group: sorted(  # type: ignore[misc]
                map(tuple, rows(database, "SELECT * FROM oldest_unread(:g)", g=g.group_id))
            )

    def shown(self) -> Any:
        return recorded(self.lane.database, self.lane.name).commits

    def of_budget(self, unit: str, random: Random) -> None:
        head = self.lane.head()
        found = self.lane.rows(
            """SELECT s.segment_id, coalesce(tail_offset, s.events) AS past FROM segment s
            LEFT JOIN segment_tail t USING (stream_id, segment_id) WHERE stream_id = :s"""
        )
        for files in (1, 3, 20, 1000):
            wanted = [
                (row.segment_id, random.randint(0, row.past), random.randint(0, row.past))
                for row in random.sample(found, random.randint(1, len(found)))
            ]
            given = {
                "t": [self.lane.stream_id] * len(wanted), "g": [w[0] for w in wanted],
                "a": [min(w[1:]) if files > 3 else 0 for w in wanted],
                "b": [max(w[1:]) for w in wanted],
                "e": random.choice([1, 10, 10**9]), "f": files, "u": unit, "h": json.dumps(head),
            }  # fmt: skip
            self.ask("""SELECT *, CAST(:h AS text) FROM what_fits(CAST(:t AS bigint[]),
                CAST(:g AS bigint[]), CAST(:a AS bigint[]), CAST(:b AS bigint[]), :e, 1000000000,
                :f, :u) ORDER BY 1, 2""", **given)  # fmt: skip


def newest(lane: Lane, events: int) -> list[Any]:
    """Return the last events in write order: of each the commit, as slices may be more."""
    slices = lane.database.snapshot(lambda c: newest_slices(c, lane.stream_id, events))
    found = sorted(((s.last_clock, s.segment_id, s.start_offset + s.first_row,
                     s.start_offset + s.end_row) for s in slices), reverse=True)  # fmt: skip
    taken: list[Any] = []
    total = 0
    for one in found:
        if total >= events and one[0] != taken[-1][0]:
            break
        taken.append(one)
        total += one[3] - one[2]
    return taken
