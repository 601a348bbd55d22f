"""Scaling by load beside another operation: one of them happens, whole, wherever the run is when
the other one comes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.controller.interleave import Outcome, Scene, Stage, stage_on
from tests.controller.operations import (
    committing,
    scaling,
    scaling_by_load,
    sealing,
    updating,
)
from tests.world.scaling import made, write
from tests.world.streams import Lane
from weir.database.connection import Database

# What a run returns that finds the stream sealed, or in another epoch or with another policy.
NOTHING: tuple[list[Any], ...] = ([], [[False, "void", None]])


@pytest.fixture
def stage(shared_database: Database) -> Iterator[Stage]:
    """Two sessions and one that watches."""
    with stage_on(shared_database) as opened:
        yield opened


def hot(database: Database) -> Lane:
    lane = made(database, 2)
    write(lane, {"0.0": 25.0, "1.0": 8.0})
    return lane


def another_run(database: Database) -> Scene:
    lane = hot(database)
    return Scene([lane.name], scaling_by_load(lane), scaling_by_load(lane))


def a_scale_by_hand(database: Database) -> Scene:
    lane = hot(database)
    return Scene([lane.name], scaling_by_load(lane), scaling(lane, "0.0", parts=3))


def an_append_that_rolls(database: Database) -> Scene:
    lane = made(database, 2)
    late = lane.opened("late")
    lane.scale("0.0", parts=2)
    write(lane, {"2.1": 25.0, "3.1": 8.0, "1.0": 8.0})
    return Scene([lane.name], scaling_by_load(lane), committing(late))


def a_seal(database: Database) -> Scene:
    lane = hot(database)
    return Scene([lane.name], scaling_by_load(lane), sealing(lane))


def another_policy(database: Database) -> Scene:
    lane = hot(database)
    return Scene([lane.name], scaling_by_load(lane), updating(lane, target_rate=1000))


@pytest.mark.parametrize(
    "scene", [another_run, a_scale_by_hand, an_append_that_rolls, a_seal, another_policy]
)
def test_of_a_run_and_another_operation_one_happens_or_one_after_the_other(
    stage: Stage, shared_database: Database, scene: Callable[[Database], Scene]
) -> None:
    def fresh() -> Scene:
        return scene(shared_database)

    backwards = stage.alone(fresh().swapped())
    right = [stage.alone(fresh()), Outcome(backwards.second, backwards.first, backwards.state)]
    one, other = fresh(), fresh()
    first = stage.alone(Scene(one.names, one.first, lambda _: None))
    second = stage.alone(Scene(other.names, lambda _: None, other.second))
    for run in stage.runs(fresh):
        found = run.outcome
        if found.first in NOTHING:
            assert (found.second, found.state) == (second.second, second.state)
        elif found.second in NOTHING:
            assert (found.first, found.state) == (first.first, first.state)
        else:
            assert found in right, f"a mixture, when it was stopped before {run.statement}"
