"""What the form accepts and what the job accepts are the same, but for what Airflow can't check."""

import re
from collections.abc import Iterator
from copy import copy
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

import airflow
import pytest
from airflow.sdk import Param
from airflow.sdk.definitions.param import ParamsDict
from airflow.sdk.exceptions import ParamValidationError
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from tests.raises import raises
from weir.airflow.forms import form
from weir.errors import InvalidInput
from weir.front_ends import speaking
from weir.operations.form import json_schema, parse
from weir.operations.jobs import ACTIONS, FORMS

GOOD: dict[str, dict[str, Any]] = {
    "create_stream": {"stream": "nyc/flights", "routing_key": "tailnum"},
    "scale_stream": {"stream": "nyc/flights", "segments": ["1.0"]},
    "update_stream": {"stream": "nyc/flights"},
    "back_test": {"stream": "nyc/flights"},
    "seal_stream": {"stream": "nyc/flights"},
    "delete_stream": {"stream": "nyc/flights"},
    "truncate_stream": {"stream": "nyc/flights", "cut": "0.0=12, 1.0=7"},
    "erase": {"stream": "nyc/flights", "reason": "asked"},
    "create_reader_group": {"reader_group": "delays", "streams": ["nyc/flights"]},
    "update_reader_group": {"reader_group": "delays"},
    "reset_reader_group": {"reader_group": "delays", "to": "start"},
    "fork_reader_group": {"reader_group": "delays", "new_reader_group": "replay"},
    "release_reader_group": {"reader_group": "delays"},
    "delete_reader_group": {"reader_group": "delays"},
    "reader_offline": {"reader_group": "delays", "reader": "dag/run/task/0"},
    "checkpoint_reader_group": {"reader_group": "delays", "name": "before the migration"},
    "define_adjunct_store": {"adjunct_store": "nyc/planes", "stream": "nyc/plane-changes"},
    "update_adjunct_store": {"adjunct_store": "nyc/planes"},
    "delete_adjunct_store": {"adjunct_store": "nyc/planes"},
    "adjunct": {},
    "ingest": {"stream": "nyc/flights", "files": ["january.parquet"]},
    "process": {"reader_group": "delays"},
    "apply": {},
    "put_back": {"reader_group": "delays"},
    "stream_cuts": {}, "checkpoints": {}, "retention": {}, "upkeep": {},
    "compact": {},
    "publish": {},
    "verify": {},
    "audit": {},
    "scale": {},
    "recover": {},
}  # fmt: skip
# Tried in every field of every form.
VALUES: list[Any] = [
    "nyc/flights", "nyc/flights\n", "NYC/flights", "nyc", "nyc/", "/flights", "../flights",
    "nyc/../flights", "nyc/flights/2013", "nyc/flights.rejected", "nyc/fl'ights", 'nyc/"flights"',
    "nyc/flights; DROP TABLE stream", f"{'s' * 63}/{'s' * 63}", f"{'s' * 64}/s", "nyc/flüge",
    "delays", "delays\n", "-delays", "_delays", "Delays", "d", "../delays", "de lays", "",
    " ", "\0", "a:b", "a.b:c", "a.b:c\n", "a:b:c", "a b:c", "1a:b", "os:system('id')", "a..b:c",
    "stream:nyc/x", "parquet:folder", "parquet:folder\n", "parquet:", "jdbc:x", "parquet:a b",
    "1.0", "1.0\n", "1", "-1.0", "1.0.0", "csv", "CSV", "parquet", "fail", "spread", "head",
    "before-the-migration", "segment", "split",
    "manual", "7 d", "500 MB", "7 weeks", "none", "report",
    "unchanged", "fixed", "strings", ".hidden", "a" * 200, "a" * 201, "a/b",
    "tailnum", "x\ny", "3", "true", "None", ",", ";", "\t",
    0, 1, 2, -1, 10_000, 10_001, 1000, 1001, 2**70, 1.5, 0.5, 0.0, 1.0, -0.5, 1e300,
    True, False, None,
    [], {}, [[]], ["nyc/flights"], ["nyc/flights", "nyc/flights\n"], ["nyc/flights", "../x"],
    ["1.0"], ["1.0", "2.0"], ["1.0\n"], ["1.0", 1.0], [""], ["a.parquet", "b.parquet"], [0.5],
    [0.25, 0.5], [0.0], [1.0], [True], [1], ["0.5"], [None], [-0.1], ["stream:nyc/x"],
    ["parquet:folder", "stream:nyc/x"], ["parquet:"], {"stream": "nyc/flights"}, "['1.0']",
    " nyc/flights\t", "nyc/ flights", "delays ", ["nyc/flights", "", " "], ["", " "], [" 1.0"],
    ["0.5", " .25 ", ""], ["0"], ["0.0"], ["1.5"], ["x"],
]  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def schemas_checked_once() -> Iterator[None]:
    """Let jsonschema check a schema once: it does so for each value, which takes longer than to
    check the value."""
    checked: set[str] = set()
    real = Draft202012Validator.check_schema

    def check(schema: Any, **given: Any) -> None:
        if (text := repr(schema)) not in checked:
            real(schema, **given)
            checked.add(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Draft202012Validator, "check_schema", check)
        yield


PARAMS: dict[str, dict[str, Param]] = {job: form(job) for job in FORMS}


def form_accepts(job: str, given: dict[str, Any], *names: str) -> bool:
    """Whether Airflow lets a run start with this form, or with these fields of it: it checks each
    by itself."""
    form = {name: copy(PARAMS[job][name]) for name in names or PARAMS[job]}
    try:
        filled = ParamsDict(form)
        filled.update({name: given[name] for name in names} or given)
        filled.validate()
    except ParamValidationError:
        return False
    return True


def refusal(job: str, given: dict[str, Any]) -> str:
    """What the job says if it does not begin to work with these arguments; empty if it does."""
    try:
        with speaking("form", FORMS, job):
            parse(FORMS[job], given)
    except InvalidInput as error:
        return str(error)
    return ""


def whole_float(value: Any) -> bool:
    """JSON schema knows no difference between 1 and 1.0."""
    return isinstance(value, float) and value.is_integer()


def blank(value: Any) -> bool:
    """A text of blanks, of which nothing is left once they are gone."""
    return isinstance(value, str) and value != "" and not value.strip()


def twice(value: Any) -> bool:
    """The same entry twice, which is seen once the blanks around it are gone."""
    return isinstance(value, list) and len({str(one).strip() for one in value}) < len(value)


@pytest.mark.parametrize(("job", "name"), [(j, f.name) for j in FORMS for f in fields(FORMS[j])])
def test_job_and_form_agree_on_every_value_and_a_refusal_names_it(job: str, name: str) -> None:
    [title] = [one.metadata["title"] for one in fields(FORMS[job]) if one.name == name]
    names_it = re.compile(
        rf'^"{re.escape(title)}" (is|holds) .*(, which (is not|can.t be) .*| times; give it once)'
    )
    accepted = 0
    for value in VALUES:
        given = {**GOOD[job], name: value}
        by_form, refused = form_accepts(job, given, name), refusal(job, given)
        accepted += not refused
        assert by_form or refused, f"the job accepts {value!r}, which the form refuses"
        assert not refused or names_it.search(refused)
        if by_form and refused:
            known = whole_float(value) or twice(value) or blank(value)
            assert known, f"the form accepts {value!r}, which the job refuses"
    assert 0 < accepted < len(VALUES)


AGE_UNITS = "an age such as 30 min, 12 h or 7 d, or none; the units are s, min, h, d"
SIZE_UNITS = "a size such as 500 MB or 2 GB, or none; the units are B, kB, MB, GB, TB"


@pytest.mark.parametrize(
    ("job", "name", "value", "said"),
    [
        ("create_stream", "retain_min_age", "-1 d", f"is '-1 d', which is not {AGE_UNITS}."),
        ("create_stream", "retain_max_bytes", "1 KB", f"is '1 KB', which is not {SIZE_UNITS}."),
        ("create_stream", "segments", 10_001,
         "is 10001, which is not a whole number at least 1 and at most 10,000."),
        ("update_reader_group", "generation", -2,
         "is -2, which is not a whole number at least -1 and at most 2,147,483,647."),
        ("update_reader_group", "on_gap", "x",
         "is 'x', which is not one of unchanged, fail, skip."),
        ("scale_stream", "segments", ["1.0", "x"],
         "holds 'x', which is not a segment as number.epoch, such as 5.1."),
        ("scale_stream", "segments", [], "is [], which is not a list with a length of at least 1."),
        ("reset_reader_group", "to", "", "is '', which is not a text with a length of at least 1."),
        ("create_reader_group", "subscriber", "yes", "is 'yes', which is not true or false."),
    ],
)  # fmt: skip
def test_what_is_refused_is_said_in_one_sentence(
    job: str, name: str, value: object, said: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(FORMS[job], {**GOOD[job], name: value})
    assert str(refused.value) == f"{name} {said} [argument_invalid]"


@pytest.mark.parametrize("job", FORMS)
def test_what_must_be_filled_in_is_enough(job: str) -> None:
    required = {f.name for f in fields(FORMS[job])
                if f.default is MISSING and f.default_factory is MISSING}  # fmt: skip
    assert set(GOOD[job]) == required
    assert form_accepts(job, GOOD[job])
    assert refusal(job, GOOD[job]) == ""
    for name in required:
        without = {key: value for key, value in GOOD[job].items() if key != name}
        assert not form_accepts(job, without)
        with raises(f"argument_missing {name}"):
            parse(FORMS[job], without)


def required_by_airflow(schema: dict[str, Any]) -> bool:
    """The rule of Airflow's UI, see `UI_RULE`: such a field has a red star, and the Trigger button
    is disabled while it is null or empty."""
    kind = schema.get("type")
    return bool(kind) and not (isinstance(kind, list) and "null" in kind)


UI_RULE = "!!e.schema.type&&(!Array.isArray(e.schema.type)||!e.schema.type.includes(`null`))"
UI_EMPTY = "(e.value===null||e.value===void 0||e.value===``)"


def test_the_ui_of_this_airflow_has_the_rules_that_are_tested_here() -> None:
    [bundle] = (Path(airflow.__file__).parent / "ui" / "dist" / "assets").glob("index-*.js")
    source = bundle.read_text(errors="replace")
    assert UI_RULE in source
    assert UI_EMPTY in source


@pytest.mark.parametrize("job", FORMS)
def test_a_form_can_be_submitted_with_nothing_but_its_required_fields(job: str) -> None:
    empty = set()
    for name, param in form(job).items():
        has_star = required_by_airflow(param.schema)
        assert has_star == (name in GOOD[job]), f"{name} looks required: {has_star}"
        if has_star and param.resolve(suppress_exception=True) in (None, ""):
            empty.add(name)
    assert empty == set(GOOD[job])


@pytest.mark.parametrize(("job", "name"), [(j, f.name) for j in FORMS for f in fields(FORMS[j])])
def test_a_field_that_was_emptied_means_its_default(job: str, name: str) -> None:
    given = {**GOOD[job], name: None}
    if name in GOOD[job]:
        assert not form_accepts(job, given)
        return
    assert form_accepts(job, given)
    begun = next(f.metadata["in_forms"] for f in fields(FORMS[job]) if f.name == name)
    careful = {} if begun is None else {name: begun}
    assert parse(FORMS[job], given) == parse(FORMS[job], GOOD[job] | careful)


@pytest.mark.parametrize(
    ("job", "name", "value", "meant"),
    [
        ("create_stream", "stream", " shop/orders ", "shop/orders"),
        ("create_stream", "retain_max_age", "", ""),
        ("create_stream", "tags", ["a", "", " b ", ""], ["a", "b"]),
        ("create_reader_group", "streams", ["shop/orders", ""], ["shop/orders"]),
        ("create_reader_group", "start", "", "head"),
        ("erase", "keys", ["C1", "", " C2"], ["C1", " C2"]),
        ("erase", "keys", [""], [""]),
        ("ingest", "separator", "\t", "\t"),
    ],
)  # fmt: skip
def test_blank_lines_and_blanks_around_an_entry_mean_nothing(
    job: str, name: str, value: Any, meant: Any
) -> None:
    given = {**GOOD[job], name: value}
    assert form_accepts(job, given)
    with speaking("form", FORMS, job):
        assert getattr(parse(FORMS[job], given), name) == meant


LISTS = [
    (job, one.name)
    for job in FORMS
    for one in fields(FORMS[job])
    if json_schema(FORMS[job], one)["type"] == "array" and (job, one.name) != ("erase", "keys")
]


@pytest.mark.parametrize(("job", "name"), LISTS)
def test_a_list_of_nothing_but_empty_entries_does_not_mean_all(job: str, name: str) -> None:
    for empty in ([""], ["", ""], [" ", ""]):
        given = {**GOOD[job], name: empty}
        assert not form_accepts(job, given)
        for front_end in ("form", "terminal", "program"):
            with speaking(front_end, FORMS, job), pytest.raises(InvalidInput, match="holds"):
                parse(FORMS[job], given)


@pytest.mark.parametrize(("job", "name"), LISTS)
def test_an_empty_entry_beside_others_is_refused_where_no_person_fills_in_lines(
    job: str, name: str
) -> None:
    with speaking("program", FORMS, job), pytest.raises(InvalidInput, match=f"{name} holds"):
        parse(FORMS[job], {**GOOD[job], name: ["nyc/flights", ""]})


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ('["orders.parquet"]', "orders.parquet"),
        ("['a b.csv', 'c.csv']", "a b.csv"),
        ('"orders.parquet",', "orders.parquet"),
        ("'orders.parquet'", "orders.parquet"),
    ],
)
def test_an_entry_written_as_programs_write_lists_is_refused(line: str, meant: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(FORMS["ingest"], {"stream": "shop/orders", "files": ["x.csv", line]})
    assert refused.value.sentence == (
        f"files holds {line!r}, which is not one entry; write {meant} as an entry of its own, "
        "without brackets, quotes and commas."
    )


@pytest.mark.parametrize("name", ["[a].csv", "a, b.csv", "it's.csv", "[a", '"', "a'b'", ".csv"])
def test_a_file_may_have_brackets_quotes_and_commas_in_its_name(name: str) -> None:
    given = {"stream": "shop/orders", "files": [name]}
    assert parse(FORMS["ingest"], given).files == [name]


@pytest.mark.parametrize("job", FORMS)
def test_the_forms_defaults_are_the_jobs(job: str) -> None:
    filled = ParamsDict(form(job))
    filled.update(GOOD[job])
    careful = {one.name: one.metadata["in_forms"] for one in fields(FORMS[job])
               if one.metadata["in_forms"] is not None}  # fmt: skip
    assert parse(FORMS[job], filled.validate()) == parse(FORMS[job], GOOD[job] | careful)


@pytest.mark.parametrize("job", [name for name, one in ACTIONS.items() if one.measure])
def test_the_form_of_what_may_lose_data_begins_with_a_dry_run(job: str) -> None:
    assert PARAMS[job]["dry_run"].value is True


@pytest.mark.parametrize("job", [name for name, one in ACTIONS.items() if one.measure])
def test_a_dry_run_that_is_null_does_not_mean_to_act(job: str) -> None:
    assert parse(FORMS[job], GOOD[job] | {"dry_run": None}).dry_run is True


@pytest.mark.parametrize("job", FORMS)
def test_an_unknown_key_is_refused_by_name_though_airflow_lets_it_pass(job: str) -> None:
    given = {**GOOD[job], "bogus": 1}
    assert form_accepts(job, given)
    with raises("argument_invalid 'bogus'"):
        parse(FORMS[job], given)


def test_any_text_is_a_key_of_every_front_end() -> None:
    for front_end in ("form", "terminal", "program"):
        with speaking(front_end, FORMS, "erase"):
            for key in ("", "k" * 16_384, " blank ", "\t\x01", "日本語", "12", "a\nb"):
                assert parse(FORMS["erase"], {**GOOD["erase"], "keys": [key]}).keys == [key]
