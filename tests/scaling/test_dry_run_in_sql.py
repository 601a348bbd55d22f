"""What SQL says of a stream is what a run decides."""

from random import Random

from tests.chance import cases, random_for
from tests.world.scaling import made, scaled, write
from tests.world.streams import rows, unique
from weir.controller.seal import seal_stream
from weir.database.connection import Database


def play(database: Database, random: Random) -> str:
    segments = random.choice([1, 2, 4, 7])
    least = random.randint(1, segments)
    most = random.choice([None, segments, segments + 1, segments + 3])
    lane = made(
        database, segments, min_segments=least, max_segments=most,
        scaling=random.choice(["event_rate", "event_rate", "byte_rate"]),
        target_rate=random.choice([10, 100]), scale_factor=random.choice([2, 4]),
        scale_cooldown=random.choice([0, 600, 3000]),
    )  # fmt: skip
    rates = {name: random.choice([0.0, 1.0, 2.0, 4.0, 8.0, 35.0]) for name in lane.active()}
    write(lane, rates, minutes=random.choice([1, 8, 40]))
    if random.random() < 0.3 and most is None:
        lane.scale(random.choice(lane.active()), parts=2)
        later = {name: random.choice([1.0, 4.0, 35.0]) for name in lane.active()}
        write(lane, later, minutes=random.choice([3, 15, 40]))
    run = scaled(lane, dry_run=True)
    found = rows(database, "SELECT * FROM scale_dry_run(:name)", name=str(lane.name))
    assert {(one.action, one.rule) for one in found} == {(run["action"], run["rule"])}
    assert sorted(one.segments for one in found if one.segments) == sorted(
        one["segments"] for one in run["changes"]
    )
    pieces = {one.segments[0]: one.pieces for one in found if one.segments}
    assert pieces == {one["segments"][0]: len(one["points"]) + 1 for one in run["changes"]}
    why = rows(database, "SELECT * FROM why_scale(:name)", name=str(lane.name))
    assert [one.segment for one in why] == lane.active()
    hot = {name for one in found if one.action == "split" for name in one.segments}
    assert hot <= {one.segment for one in why if one.verdict == "hot"}
    return str(run["rule"])


def test_a_dry_run_in_sql_says_what_a_run_decides(shared_database: Database) -> None:
    seen: set[str] = set()
    for n in range(2_000):  # until each kind of change was among them
        if n >= cases(250) and {"hot", "cold"} <= seen:
            break
        seen.add(play(shared_database, random_for("dry run", n)))
    assert {"hot", "cold"} <= seen


def test_a_sealed_stream_and_one_that_is_fixed_are_left(shared_database: Database) -> None:
    lane = made(shared_database, scaling="fixed", target_rate=None, scale_factor=None)

    def rules() -> list[str]:
        return [
            row.rule
            for row in rows(
                lane.database, "SELECT * FROM scale_dry_run(:name)", name=str(lane.name)
            )
        ]

    assert rules() == ["fixed"]
    assert scaled(lane)["rule"] == "fixed"
    seal_stream(lane.database, lane.name, request_id=unique("seal"))
    assert rules() == ["sealed"]
