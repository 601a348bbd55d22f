"""Each setting is described once, and is in the form that creates its owner and in the one that
changes it."""

from dataclasses import fields
from time import process_time
from typing import Any

import pytest

from tests.raises import raises
from weir.model.adjunct_configuration import AdjunctConfiguration, AdjunctDefinition
from weir.model.group_configuration import GroupConfiguration
from weir.model.stream_configuration import Configuration
from weir.operations import column_settings, group_settings, store_settings, stream_settings
from weir.operations.form import parse
from weir.operations.group_forms import CreateReaderGroup, UpdateReaderGroup
from weir.operations.setting import settings_of
from weir.operations.store_forms import DefineAdjunctStore, UpdateAdjunctStore
from weir.operations.stream_forms import CreateStream, UpdateStream

STREAM = {"stream": "s/events"}
GROUP = {"reader_group": "group"}
STORE = {"adjunct_store": "s/store"}
# Who has the settings, their descriptions, the forms, and what the forms require.
OWNERS: list[tuple[type[Any], dict[str, Any], type[Any], type[Any], dict[str, Any]]] = [
    (Configuration, stream_settings.SETTINGS, CreateStream, UpdateStream, STREAM),
    (GroupConfiguration, group_settings.SETTINGS, CreateReaderGroup, UpdateReaderGroup, GROUP),
    (AdjunctConfiguration, store_settings.SETTINGS, DefineAdjunctStore, UpdateAdjunctStore, STORE),
    (AdjunctDefinition, store_settings.SETTINGS, DefineAdjunctStore, UpdateAdjunctStore, STORE),
]
MORE: dict[type[Any], dict[str, Any]] = {
    CreateStream: {"routing_key": "k"},
    CreateReaderGroup: {"streams": ["s/events"]},
    DefineAdjunctStore: STREAM,
}
# The first is fixed when a stream is created; `segments` sets the other one.
NOT_CHANGED = {(Configuration, "routing_key"), (Configuration, "min_segments")}
# What a person may write for each setting, and what is then set.
WRITTEN: dict[str, tuple[Any, Any]] = {
    "on_missing_key": ("spread", "spread"), "on_bad_rows": ("quarantine", "quarantine"),
    "on_new_column": ("refuse", "refuse"), "refuse_erased": ("yes", True),
    "retention": ("keep", "keep"), "retain_min_age": ("7 d", 604_800),
    "retain_max_age": ("none", None), "retain_min_bytes": ("2 GB", 2 * 10**9),
    "retain_max_bytes": ("none", None), "cuts_every": ("1 h", 3_600),
    "scaling": ("byte_rate", "byte_rate"),
    "target_rate": (7, 7), "scale_factor": (3, 3), "max_segments": ("16", 16),
    "scale_cooldown": ("none", 0), "event_time": (" none ", None),
    "event_time_ahead": ("1 d", 86_400), "event_time_back": ("2 d", 172_800), "tags": (["-"], ()),
    "owner": ("none", None), "publish": ("iceberg", "iceberg"), "subject": ("-", ""),
    "subscriber": ("no", False), "on_gap": (None, None), "release": ("manual", "manual"),
    "time_out": ("none", None), "max_outstanding": (5, 5), "aligned": ("yes", True),
    "max_ahead": ("2 h", 7_200), "layout": ("partitioned", "partitioned"),
    "bootstrap": ("none", "none"), "missing": ("empty", "empty"), "patience": (60, 60),
    "null_key": ("fail", "fail"), "on_error": ("skip", "skip"), "keep_versions": ("2 d", 172_800),
    "history": ("none", None), "key": ("-", ""), "key_type": ("STRING", "STRING"),
    "value": ("-", ""), "value_columns": ("-", ""), "delete_when": ("op = 'd'", "op = 'd'"),
}  # fmt: skip
WRITTEN_FOR = {(GroupConfiguration, "on_gap"): "skip", (AdjunctConfiguration, "on_gap"): "rebuild"}


@pytest.mark.parametrize(
    ("owner", "settings", "creates", "changes", "required"), OWNERS, ids=lambda one: str(one)[:40]
)
def test_each_setting_is_described_once_and_is_in_both_forms(
    owner: type[Any], settings: dict[str, Any], creates: type[Any], changes: type[Any],
    required: dict[str, Any],
) -> None:  # fmt: skip
    created = {one.name: one for one in fields(creates)}
    changed = {one.name: one for one in fields(changes)}
    blank = parse(changes, required)
    assert settings_of(blank, owner) == {}
    for one in fields(owner):
        if one.name == "routing_key":
            continue
        about = settings[one.name]
        assert created[one.name].metadata["description"].startswith(about.description)
        if (owner, one.name) in NOT_CHANGED:
            continue
        assert changed[one.name].metadata["description"].startswith(about.description)
        written, value = WRITTEN[one.name]
        if (owner, one.name) in WRITTEN_FOR:
            written = value = WRITTEN_FOR[owner, one.name]
        form = parse(changes, {**required, one.name: written})
        assert settings_of(form, owner) == {one.name: value}


@pytest.mark.parametrize(("owner", "creates", "required"), [(o, c, r) for o, _, c, _, r in OWNERS])
def test_what_is_left_as_it_comes_creates_the_defaults(
    owner: type[Any], creates: type[Any], required: dict[str, Any]
) -> None:
    form = parse(creates, {**required, **MORE[creates]})
    key = {"routing_key": "k"} if owner is Configuration else {}
    assert owner(**{**settings_of(form, owner), **key}) == owner(**key)


def test_a_stream_that_scales_by_load_splits_a_segment_into_two_unless_it_says_otherwise() -> None:
    given = {**STREAM, "routing_key": "k", "scaling": "event_rate", "target_rate": 10}
    assert parse(CreateStream, given).configuration.scale_factor == 2
    assert parse(CreateStream, {**given, "scale_factor": 5}).configuration.scale_factor == 5


def test_a_form_that_has_no_choice_unchanged_takes_the_word_for_a_column() -> None:
    given = {**STREAM, "routing_key": " unchanged ", "event_time": "unchanged"}
    created = parse(CreateStream, given).configuration
    assert (created.routing_key, created.event_time) == ("unchanged", "unchanged")
    assert parse(UpdateStream, {**STREAM, "event_time": "unchanged"}).changes == {
        "event_time": "unchanged"
    }
    store = parse(DefineAdjunctStore, {**STORE, **STREAM, "delete_when": "unchanged"})
    assert store.asked.whole.definition.delete_when == "unchanged"


def test_a_dash_is_a_text_like_others_where_it_removes_nothing() -> None:
    created = parse(CreateStream, {**STREAM, "routing_key": "-"}).configuration
    assert created.routing_key == "-"
    assert parse(UpdateStream, {**STREAM, "event_time": "-"}).changes == {"event_time": "-"}
    with raises("argument_invalid bootstrap '-'"):
        _ = parse(DefineAdjunctStore, {**STORE, **STREAM, "bootstrap": "-"}).asked.whole


def test_an_empty_routing_key_is_left_to_the_check_of_expressions() -> None:
    for empty in ("", " "):
        assert parse(CreateStream, {**STREAM, "routing_key": empty}).configuration.routing_key == ""


def test_changes_of_columns_are_read_at_once_whatever_is_written() -> None:
    assert column_settings.renames([" a b -> c \n", "x->y->z"]) == {"a b": "c", "x": "y->z"}
    quoted = column_settings.renames(["` a` -> `b``` ", "`x->y`->z", "`a -> d"])
    assert quoted == {" a": "b`", "x->y": "z", "`a": "d"}
    assert column_settings.defaults(["a =  b = c ", "b="]) == {"a": " b = c ", "b": ""}
    began = process_time()
    for read in (column_settings.renames, column_settings.defaults):
        for wrong in (" " * 4096, "a" + " " * 4095, "->b" + " " * 4000, "= 1"):
            with raises("argument_invalid once"):
                read([wrong])
    assert process_time() - began < 1
