"""An argument that would change nothing is refused, in every form."""

from dataclasses import fields
from typing import Any

import pytest

from tests.raises import raises
from weir.operations.effects import check_effects
from weir.operations.form import default_of, is_required, parse
from weir.operations.jobs import FORMS

BY_CLASS = {form.__name__: form for form in FORMS.values()}
# By form and argument, the one beside which it counts, or does not.
COUNTS = {
    (name, one.name): one.metadata["beside"] or one.metadata["unless"]
    for name, form in BY_CLASS.items()
    for one in fields(form)
    if one.metadata["beside"] or one.metadata["unless"]
}
NEEDED = {
    "stream": "s/a", "streams": ["s/a"], "reader_group": "g", "new_reader_group": "h", "name": "n",
    "reader": "r", "adjunct_store": "s/b", "routing_key": "k", "reason": "why", "cut": "tail",
    "to": "tail", "segments": ["0.0"], "files": ["x.csv"],
}  # fmt: skip
GIVEN: dict[str, Any] = {
    "barrier": True, "patience": 5, "everything": True, "subject": "k",
    "start": "tail", "engine": "pyarrow", "condition": "n = 1", "keys": ["a"], "cancel": True,
    "streams": ["s/a"], "contents": True,
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
               "time_zone", "rename"},  # weir.inputs.files
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
    assert options - known == set(), "say when these count, in the form or here"


@pytest.mark.parametrize(("form", "name"), COUNTS)
def test_an_option_is_refused_where_it_would_change_nothing(form: str, name: str) -> None:
    of, other, given = BY_CLASS[form], COUNTS[form, name], required(form)
    begins = {one.name: default_of(one) for one in fields(of)}
    [field] = [one for one in fields(of) if one.name == name]
    nothing = type(begins[other])()
    alone = {other: nothing if field.metadata["beside"] else GIVEN[other]}
    with raises(f"arguments_conflict {name} {other}"):
        check_effects(parse(of, {**given, **alone, name: GIVEN[name]}))
    # As a form of Airflow sends it.
    check_effects(parse(of, {**given, **alone, name: begins[name]}))
    counts = {other: GIVEN[other] if field.metadata["beside"] else begins[other]}
    check_effects(parse(of, {**given, **counts, name: GIVEN[name]}))
