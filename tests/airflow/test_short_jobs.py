"""Which jobs run without Java's optimising compiler."""

import pytest

from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.actions import FORMS
from weir.airflow import operators
from weir.database.connection import Database
from weir.operations.form import parse
from weir.settings import Settings


def test_a_job_is_short_that_changes_metadata_or_reads_few_events(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert operators.is_short("retention", None, settings)
    assert not operators.is_short("ingest", None, settings)
    lane = Lane.made(database, name=f"test/{unique('stream')}")
    lane.append({"0.0": 5})
    form = parse(FORMS["process"], {"reader_group": Group.made(lane).name})
    monkeypatch.setattr(operators, "SHORT_EVENTS", 5)
    assert operators.is_short("process", form, settings)
    lane.append({"0.0": 1})
    assert not operators.is_short("process", form, settings)
