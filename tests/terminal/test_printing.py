"""Reports are written for people as people write settings."""

import json
import re

import pytest

from weir.terminal.__main__ import parser
from weir.terminal.printing import as_json, records


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("retain_min_age", 2_592_000, "30 d"),
        ("retain_max_age", 5_400, "90 min"),
        ("retain_max_age", 86_401, "86401 s"),
        ("retain_min_bytes", 500_000_000, "500 MB"),
        ("retain_max_bytes", 2_000_000_000, "2 GB"),
        ("retain_max_bytes", None, "-"),
        ("scale_cooldown", 600, "10 min"),
        ("scale_cooldown", 0, "none"),
        ("cuts_every", 3_600, "1 h"),
        ("cuts_every", 60, "1 min"),
        ("time_out", 604_800, "7 d"),
        ("max_ahead", 90, "90 s"),
        ("history", 172_800, "2 d"),
        ("patience", 3_600, "3,600"),
        ("events", 2_592_000, "2,592,000"),
    ],
)
def test_ages_and_sizes_of_settings_are_said_as_people_write_them(
    name: str, value: int | None, said: str
) -> None:
    assert records({name: value}) == f"{name}  {said}"


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_are_said_in_one_style(kind: type) -> None:
    assert records({"created": kind(())}) == "created  -"
    assert records({"end": {}}) == "end  -"
    assert records({"deletes": kind(("it goes, now",))}) == "deletes:\n  it goes, now"
    assert records({"streams": kind(("shop/a", "shop/b"))}) == "streams  shop/a, shop/b"
    assert records({"created": kind((["0.0", 0, 1],))}) == 'created  [["0.0", 0, 1]]'


def test_programs_get_seconds_and_lists() -> None:
    assert (
        as_json({"retain_min_age": 2_592_000, "of": []}) == '{"retain_min_age": 2592000, "of": []}'
    )


def test_help_says_what_is_required_repeated_and_taken_if_nothing_is_given(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for command, said in {
        "truncate-stream": ["checkpoint NAME: .* 0.0=12, 1.0=7. Required.", "undo. Default: yes."],
        "create-reader-group": ["scope/stream. Required. Give it once for each."],
        "create": ["change it. Default: 1.", "^usage: weir create .* --key KEY "],
    }.items():
        with pytest.raises(SystemExit):
            parser().parse_args([command, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert [one for one in said if not re.search(one, shown)] == []


def test_json_moves_no_cursor_and_turns_no_text() -> None:
    given = "a\x7f\x9b\u202e\u2066\x1bz"
    written = as_json({"said": given})
    assert written == '{"said": "a\\u007f\\u009b\\u202e\\u2066\\u001bz"}'
    assert json.loads(written) == {"said": given}
