"""The decision of retention, on streams of any shape, against the tables in sets of events."""

from random import Random

import pytest

from tests.chance import cases, random_for
from tests.controller.driver import Driver
from tests.controller.model import Cut, as_json
from tests.retention.model import Event, Events
from tests.retention.placing import let_release, limit, record
from tests.retention.tables import check_decision
from tests.sql.history import live
from tests.world.groups import Group
from tests.world.streams import database_of_file, run
from weir.database.connection import Database
from weir.model.retention_policy import Policy

database = database_of_file


def put_anywhere(driver: Driver, groups: list[Group], random: Random) -> None:
    """Let any tails have been recorded, any subscribers be there and have released anything, and
    any limits be set."""
    model = driver.model
    cuts: list[Cut] = [dict.fromkeys(model.epochs[0], 0)]
    tails = []
    for age in range(600, 0, -100):
        cuts.append(model.frontier(random, cuts[-1]))
        if random.random() < 0.7:
            tails.append((age, as_json(cuts[-1]), model.size_till(cuts[-1])[1]))
    record(driver.lane, tails)
    for group in groups:
        released = random.choice([cuts[0], *cuts])
        if random.random() < 0.7:
            released = model.frontier(random, released)
        let_release(group, as_json(released), random.random() < 0.6)
    tail = model.size_till(model.tail())[1]
    kept = [tail - model.size_till(cut)[1] for cut in cuts]
    limit(driver.lane, any_policy(random, [size for size in kept if size]))


def any_policy(random: Random, kept: list[int]) -> Policy:
    """Return any policy, also one whose sizes are just what is left behind a record."""

    def pair(known: list[int]) -> tuple[int | None, int | None]:
        """A minimum and a maximum that may be the same, or close."""
        low = random.choice([None, *known])
        highs = [
            None,
            *(one for one in known if one >= (low or 0)),
            *([low, low + 1] if low else []),
        ]
        return low, random.choice(highs)

    (min_age, max_age), (min_bytes, max_bytes) = pair([*range(150, 751, 100)]), pair(kept)
    if random.random() < 0.2:
        min_age = max_age = min_bytes = max_bytes = None
        if random.random() < 0.3:
            return Policy()
    without = [kind for kind, most in (("age", max_age), ("size", max_bytes)) if most]
    kind = random.choice(["consumed", "consumed", *without])
    return Policy(kind, min_age, max_age, min_bytes, max_bytes)


@pytest.mark.random
@pytest.mark.parametrize("case", range(cases(32)))
def test_the_decision_is_that_of_the_tables(database: Database, case: int) -> None:
    driver, random = live(database, case), random_for("decisions", case)
    if case % 2:  # all that has come since a record came right after it
        old = "UPDATE time_index SET clock = clock - 10000000000 WHERE stream_id = :s"
        run(database, old, s=driver.lane.stream_id)

    def size(event: Event) -> int:
        segment, offset = event
        return driver.model.segments[segment].events[offset].bytes

    events = Events(driver.lane)
    events.look()
    groups = [Group.made(driver.lane, release="manual") for _ in range(4)]
    rules = set()
    for _ in range(30):
        put_anywhere(driver, groups, random)
        [decided] = driver.lane.rows("SELECT * FROM decide_retention(:s)")
        check_decision(events, decided, size)
        rules.add(decided.rule)
    assert len(rules) > 4
