"""An argument that would change nothing is refused, in every form."""

from dataclasses import fields
from typing import Any

import pytest

from tests.raises import raises
from weir.operations.effects import COUNTS, check_effects
from weir.operations.form import default_of, is_required, parse
from weir.operations.jobs import FORMS

BY_CLASS = {form.__name__: form for form in FORMS.values()}
NEEDED = {
    "stream": "s/a", "streams": ["s/a"], "reader_group": "g", "new_reader_group": "h", "name": "n",
    "reader": "r", "adjunct_store": "s/b", "routing_key": "k", "reason": "why", "cut": "tail",
    "to": "tail", "segments": ["0.0"], "files": ["x.csv"],
}  # fmt: skip
GIVEN: dict[str, Any] = {
    "barrier": True, "patience": 5, "everything": True, "subject": "k",
    "start": "tail", "engine": "pyarrow", "condition": "n = 1", "keys": ["a"], "cancel": True,
    "streams": ["s/a"], "contents": False,
}  # fmt: skip
# What lets an action do more, or only look, changes nothing where there is nothing of that kind.
PERMITS = {
    "allow_loss", "allow_truncated", "allow_repeat", "allow_named", "allow_repeated_files",
    "unread_too", "dry_run", "second_name",
}  # fmt: skip
# Those of which the work finds out that they would change nothing, and refuses them (there).
FOUND_LATER = {
    "Ingest": {"null_value", "separator", "infer", "header", "skip_lines", "comment", "quote",
               "escape", "encoding", "decimal", "thousands", "date_format", "timestamp_format",
               "time_zone"},  # weir.spark.inputs.files
    "TruncateStream": {"reader_group"},  # weir.retention.manual_truncation
    "Apply": {"text"},
    "CreateStream": {"target_rate", "scale_factor", "max_segments", "retain_min_age",
                     "retain_max_age", "retain_min_bytes", "retain_max_bytes"},  # of the policies
}  # fmt: skip
# Settings are kept and shown. They count as soon as what they stand beside is set.
SETTINGS = {"CreateStream", "UpdateStream", "CreateReaderGroup", "UpdateReaderGroup",
            "DefineAdjunctStore", "UpdateAdjunctStore"}  # fmt: skip
# All others change what is done by themselves.
ALONE = {
    "Adjunct": {"adjunct_stores"}, "Apply": {"file"}, "Audit": {"everything", "files"},
    "BackTest": {"target_rate", "scaling", "scale_factor", "last", "min_segments", "max_segments",
                 "scale_cooldown", "read_files"},
    "CheckpointReaderGroup": {"cancel"}, "Compact": {"streams", "at_most", "seconds"},
    "Erase": {"keys", "condition", "requested_by"}, "ForkReaderGroup": {"at", "subscriber"},
    "Ingest": {"format", "complete_until", "batch_id", "engine", "last_line"},
    "Process": {"function", "outputs", "order", "engine", "readers", "on_error", "label",
                "parameters", "batch_events", "batch_bytes", "batch_files", "retries", "adjuncts",
                "manager"},
    "Publish": {"streams"}, "PutBack": {"function", "outputs", "parameters"},
    "ReaderOffline": {"position"}, "Recover": {"unknown_files", "erased"},
    "ReleaseReaderGroup": {"at", "generation"}, "Retention": {"streams"}, "Scale": {"streams"},
    "ScaleStream": {"parts", "reason"},
    "Verify": {"stream", "contents", "repair", "since", "until", "at_most"},
}  # fmt: skip


def required(form: str) -> dict[str, Any]:
    names = [one.name for one in fields(BY_CLASS[form]) if is_required(one)]
    return {name: NEEDED[name] for name in names}


@pytest.mark.parametrize("form", BY_CLASS)
def test_of_each_option_somebody_has_decided_when_it_counts(form: str) -> None:
    options = {one.name for one in fields(BY_CLASS[form]) if not is_required(one)}
    known = PERMITS | FOUND_LATER.get(form, set()) | ALONE.get(form, set())
    known |= {name for of, name in COUNTS if of == form}
    if form in SETTINGS:
        known |= options
    assert options - known == set(), "say when these count, in weir.operations.effects or here"


@pytest.mark.parametrize(("form", "name"), COUNTS)
def test_an_option_is_refused_where_it_would_change_nothing(form: str, name: str) -> None:
    of, beside, given = BY_CLASS[form], COUNTS[form, name], required(form)
    [other] = [one for one in fields(of) if one.name == beside.other]
    begins = default_of(other)
    without = {} if not beside.holds(begins) else {beside.other: GIVEN[beside.other]}
    with raises(f"argument_without_effect {name} {beside.other}"):
        check_effects(parse(of, {**given, **without, name: GIVEN[name]}))
    [itself] = [one for one in fields(of) if one.name == name]
    check_effects(
        parse(of, {**given, **without, name: default_of(itself)})
    )  # as a form of Airflow sends it
    beside_it = {} if beside.holds(begins) else {beside.other: GIVEN[beside.other]}
    check_effects(parse(of, {**given, **beside_it, name: GIVEN[name]}))
