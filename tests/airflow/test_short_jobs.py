"""Which jobs run without Java's optimising compiler."""

import pytest

from tests.world.groups import Group
from tests.world.streams import Lane, unique
from weir.airflow import submission
from weir.database.connection import Database
from weir.operations.form import parse
from weir.operations.jobs import FORMS
from weir.settings import Settings


def test_a_job_is_short_that_changes_metadata_or_reads_few_events(
    database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert submission.is_short("retention", None, settings)
    assert not submission.is_short("ingest", None, settings)
    lane = Lane.made(database, name=f"test/{unique('stream')}")
    lane.append({"0.0": 5})
    form = parse(FORMS["process"], {"reader_group": Group.made(lane).name})
    monkeypatch.setattr(submission, "SHORT_EVENTS", 5)
    assert submission.is_short("process", form, settings)
    lane.append({"0.0": 1})
    assert not submission.is_short("process", form, settings)
