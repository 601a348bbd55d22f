"""Codes are stable, and all that Weir says when it refuses is in one file."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.errors.sentences import GOLDEN, classes, document, in_python, in_sql, sentences
from tests.raises import raises
from weir.errors import NotFound, check_choice
from weir.model.adjunct_configuration import AdjunctConfiguration
from weir.model.group_configuration import GroupConfiguration
from weir.model.stream_configuration import Configuration


def test_the_golden_file_has_every_sentence_of_the_code() -> None:
    assert GOLDEN.read_text() == document(sentences()), "make sentences"


def test_a_code_is_lower_case_words_and_of_one_class() -> None:
    kinds: dict[str, set[str]] = {}
    for one in sentences():
        assert re.fullmatch(r"[a-z]+(_[a-z]+)+", one.code), one
        kinds.setdefault(one.code, set()).add(one.kind)
    assert {code: kind for code, kind in kinds.items() if len(kind) > 1} == {}


def test_codes_are_for_what_programs_tell_apart_and_so_they_are_few() -> None:
    assert len({one.code for one in sentences()}) <= 130, "share the code of a kind"


def test_every_code_is_in_a_test() -> None:
    here = Path(__file__).parents[1]
    texts = [
        path.read_text()
        for path in here.rglob("*")
        if path.suffix in (".py", ".json", ".jsonl", ".tsv")
    ]
    tested = set(re.findall(r"[a-z_]+", "\n".join(texts)))
    assert {one.code for one in sentences()} - tested == set()


def test_a_sentence_is_written_where_its_error_is_made() -> None:
    vague = [one for one in sentences() if len(re.findall(r"[a-z]+", one.text)) < 1]
    assert vague == []


def test_an_error_without_a_code_is_found() -> None:
    with pytest.raises(ValueError, match="here:1: the code of a NotFound"):
        list(in_python("raise NotFound(f'there is no stream {name}.')", "here"))
    with pytest.raises(ValueError, match="here:1: an error must have its code"):
        list(in_sql("RAISE EXCEPTION 'no %', x USING ERRCODE = 'WEIR1';", "here"))


@pytest.mark.parametrize(
    "source",
    [
        "raise (NotFound if gone else Conflict)('code', 'it is so.')",
        "kind = Conflict\nraise kind('code', 'it is so.')",
        "refuse(Conflict, 'code', 'it is so.')",
        "raise type(error)('code', 'it is so.')",
        "from weir.errors import Conflict as Refused",
        "raise {'gone': NotFound}[why]('code', 'it is so.')",
    ],
)
def test_an_error_that_is_made_in_a_roundabout_way_is_found(source: str) -> None:
    with pytest.raises(ValueError, match=r"here:[12]: a .* must be made by a call of its class"):
        list(in_python(source, "here"))


def test_catching_testing_and_annotating_an_error_make_none() -> None:
    source = """
class Own(NotFound):
    pass

def look(error: Conflict | None) -> NotFound | None:
    try:
        known = isinstance(error, (Conflict, NotFound))
    except (Fenced, Conflict):
        with suppress(Conflict):
            found: dict[str, type[WeirError]] = {}
"""
    assert list(in_python(source, "here")) == []


def test_an_error_says_its_sentence_and_its_code() -> None:
    for kind in classes().values():
        if kind.__name__ not in ("BatchFailed", "DatabaseFailed", "Incomplete"):
            error = kind("some_code", "it is so.")
            assert (str(error), error.code) == ("it is so. [some_code]", "some_code")


@pytest.mark.parametrize("wanted", ["other_code", "some_code 12", "some_code lake 1"])
def test_naming_another_code_or_value_than_the_error_has_fails(wanted: str) -> None:
    with raises("some_code 1 lake"):
        raise NotFound("some_code", "there is 1 stream nyc/lake.")
    with pytest.raises(AssertionError), raises(wanted):
        raise NotFound("some_code", "there is 1 stream nyc/lake.")


@pytest.mark.parametrize(
    ("choices", "said"),
    [(("fail",), "fail"), (("fail", "skip"), "fail or skip"), (("a", "b", "c"), "a, b or c")],
)
def test_a_choice_is_said_in_words(choices: tuple[str, ...], said: str) -> None:
    check_choice("on_gap", choices[-1], choices)
    with raises("argument_invalid on_gap ignore") as refused:
        check_choice("on_gap", "ignore", choices)
    assert refused.value.sentence == f"on_gap is 'ignore'; it must be {said}."


def test_no_sentence_says_a_choice_in_another_way() -> None:
    assert [one for one in sentences() if "must be one of" in one.text] == []


@pytest.mark.parametrize(
    "wrong",
    [
        Configuration(routing_key="k", on_bad_rows="x"),
        Configuration(routing_key="k", on_missing_key="x"),
        Configuration(routing_key="k", on_new_column="x"),
        Configuration(routing_key="k", scaling="x"),
        Configuration(routing_key="k", retention="x"),
        GroupConfiguration(on_gap="x"),
        GroupConfiguration(release="x"),
        AdjunctConfiguration(on_gap="x"),
    ],
)
def test_every_setting_with_choices_names_them_without_quotes(wrong: Any) -> None:
    with raises("argument_invalid x") as refused:
        wrong.check()
    _, allowed = refused.value.sentence.split("must be ")
    assert re.fullmatch(r"[a-z_, ]+ or [a-z_]+\.", allowed)
