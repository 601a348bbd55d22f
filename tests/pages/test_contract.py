"""The JSON of the pages keeps to its description, whatever it is asked (schemathesis).

Each run asks the same, so that a run fails for what it changes."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, strategies
from hypothesis import settings as drawing
from schemathesis import GenerationMode
from schemathesis.core.result import Ok
from schemathesis.openapi import from_asgi
from schemathesis.specs.openapi.checks import (
    negative_data_rejection,
    positive_data_acceptance,
)

from tests.chance import cases
from tests.pages.serving import anybody
from tests.world.groups import Group
from tests.world.streams import Lane
from weir.database.connection import Database
from weir.pages.app import Access, create_app
from weir.settings import Settings

# What is there, so that not all answers are that it is not.
THERE = {"scope": "shop", "name": "orders", "dag_id": "dag"}


@pytest.mark.random
def test_every_address_answers_as_its_description_says(
    database: Database, settings: Settings
) -> None:
    lane = Lane.made(database, 2, name="shop/orders")
    Group.made(lane)
    lane.append({"0.0": 5, "1.0": 7})
    app = create_app(Access(lambda _: settings, anybody, anybody, anybody))
    schema = from_asgi("/api/openapi.json", app)
    asked = [one.ok() for one in schema.get_all_operations() if isinstance(one, Ok)]
    assert len(asked) > 5

    for operation in asked:

        @drawing(
            max_examples=cases(160), derandomize=True, deadline=None, database=None,
            suppress_health_check=list(HealthCheck),
        )  # fmt: skip
        @given(
            case=strategies.one_of(*(operation.as_strategy(mode) for mode in GenerationMode)),
            there=strategies.booleans(),
        )
        def check(case: Any, there: bool) -> None:
            if there:
                known = {name: THERE[name] for name in case.path_parameters if name in THERE}
                case.path_parameters.update(known)
            # `after` is a text that another answer gave, which a description can't say; and a time
            # may also be a number, which pydantic takes for seconds since 1970.
            case.call_and_validate(
                excluded_checks=[positive_data_acceptance, negative_data_rejection]
            )

        check()
