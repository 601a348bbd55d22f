"""Changes that happen together: all of them, or none."""

from collections.abc import Callable
from functools import partial

import pytest
from sqlalchemy import text

from tests.database.test_connection import note, noted
from tests.raises import raises
from tests.world.streams import unique
from weir.database.connection import Database


@pytest.mark.parametrize(
    "beside",
    [
        lambda shared: shared.snapshot(lambda c: c.execute(text("SELECT 1")).all()),
        lambda shared: shared.statement(text("SELECT true AS durable"), {}),
        lambda shared: shared.keep_alive(lambda connection: None, 1.0),
    ],
    ids=["snapshot", "statement", "lease"],
)
def test_what_can_be_no_part_of_changes_that_happen_together_is_refused_and_undoes_them(
    database: Database, beside: Callable[[Database], object]
) -> None:
    request = unique("request")

    def changes(shared: Database) -> object:
        shared.transaction(partial(note, request=request))
        return beside(shared)

    with raises("transaction_shared together"):
        database.together(changes)
    assert noted(database, request) == 0
    assert database.statement(text("SELECT true AS durable"), {}).durable, "alone it may run"
