"""Stream cuts by example, and how people and JSON write them."""

import pytest

from tests.raises import raises
from weir.model.segment import Segment, segment_id
from weir.model.stream_cut import (
    FUTURE,
    Offset,
    StreamCut,
    check_valid,
    meet,
    read_entries,
    read_text,
)

# The stream of all examples: a and b were merged to d, and d was split into m1 and m2.
A, B = Segment(segment_id(0, 0), 0.0, 0.5), Segment(segment_id(1, 0), 0.5, 1.0)
D = Segment(segment_id(2, 1), 0.0, 1.0)
M1, M2 = Segment(segment_id(3, 2), 0.0, 0.5), Segment(segment_id(4, 2), 0.5, 1.0)
ALL = {s.segment_id: s for s in (A, B, D, M1, M2)}


def test_cut_lists_its_segments_by_id_with_future_as_a_word() -> None:
    cut = StreamCut({D: FUTURE, A: 12})
    assert list(cut.to_json().items()) == [("0.0", 12), ("2.1", "future")]
    assert cut.to_text() == "0.0=12, 2.1=future"
    assert cut.present == {A: 12}
    assert cut.future == [D]


def test_cut_is_not_changed_by_what_it_was_made_from_nor_through_its_offsets() -> None:
    listing: dict[Segment, Offset] = {A: 0, B: 0}
    cut = StreamCut(listing)
    listing[A] = 7
    assert cut == StreamCut({B: 0, A: 0})
    with pytest.raises(TypeError):
        cut.offsets[A] = 7  # type: ignore[index]
    with pytest.raises(AttributeError):
        cut.offsets = {}  # type: ignore[misc]


def test_seams_are_the_keys_where_the_front_changes() -> None:
    assert StreamCut({D: 5}).seams == []
    assert StreamCut({A: 3, D: FUTURE}).seams == [(0.5, A.segment_id, D.segment_id)]
    assert StreamCut({B: 3, D: FUTURE}).seams == [(0.5, B.segment_id, D.segment_id)]


def test_there_is_no_lower_bound_of_nothing() -> None:
    with raises("cut_invalid"):
        meet([])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{}", "cut_invalid offsets"),
        ("0.0=6, 1.0=0", "cut_invalid 6 0.0 5"),
        ("0.0=1, 1.0=0, 2.1=0", "cut_invalid 2.1 0.0 future"),
        ("0.0=1, 2.1=0", "cut_invalid 2.1 0.0 future"),
        ("0.0=1, 2.1=future, 4.2=0", "cut_invalid 4.2 2.1 future"),
        ("0.0=1, 1.0=future", "cut_invalid 1.0 predecessor"),
        ("2.1=future", "cut_invalid 2.1 predecessor"),
        ("0.0=1", "cut_invalid [0.5, 1.0) predecessors"),
        ("1.0=1, 4.2=future", "cut_invalid [0.0, 0.5) predecessors"),
        ("0.0=3, 4.2=0", "cut_invalid segment 2.1 0.0 4.2"),
        ("1.0=3, 3.2=0", "cut_invalid segment 2.1 1.0 3.2"),
    ],
)
def test_invalid_cut_is_refused_with_the_segment_and_the_reason(text: str, reason: str) -> None:
    cut = StreamCut.parse(text, ALL)
    with raises(reason):
        check_valid(cut, ALL.values(), dict.fromkeys(ALL, 5))


def test_negative_offset_is_refused_wherever_it_comes_from() -> None:
    with raises("cut_invalid -1 2.1"):
        check_valid(StreamCut({D: -1}), [], dict.fromkeys(ALL, 5))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "cut_invalid None"),
        ([["0.0", 1]], "cut_invalid"),
        ({"0": 1}, "name_invalid '0'"),
        ({0: 1}, "name_invalid 0"),
        ({"7.3": 1}, "cut_invalid 7.3 because"),
        ({"0.0": -1}, "cut_invalid 0.0 -1"),
        ({"0.0": True}, "cut_invalid 0.0 True"),
        ({"0.0": 1.0}, "cut_invalid 0.0 1.0"),
        ({"0.0": "1"}, "cut_invalid 0.0 '1'"),
        ({"0.0": "Future"}, "cut_invalid 0.0 'Future'"),
        ({"0.0": None}, "cut_invalid 0.0 None"),
    ],
)
def test_what_is_not_the_json_of_a_cut_is_refused(value: object, reason: str) -> None:
    with raises(reason):
        StreamCut.from_json(value, ALL)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "cut_invalid ''"),
        ("0.0=1,", "cut_invalid ''"),
        ("0.0=1 1.0=2", "cut_invalid '0.0=1 1.0=2'"),
        ("0.0", "cut_invalid '0.0'"),
        ("0.0=1=2", "cut_invalid '0.0=1=2'"),
        ("0.0=-1", "cut_invalid 0.0 '-1'"),
        ("0.0=1_0", "cut_invalid 0.0 '1_0'"),
        pytest.param("0.0=" + "9" * 5000, "cut_invalid 0.0", id="endless offset"),
        ("0.0=1, 0.0=2", "argument_invalid '0.0' once"),
        ('{"0.0": 1, "0.0": 2}', "argument_invalid '0.0' once"),
        ('{"0.0": 1', "cut_invalid JSON"),
        pytest.param('{"0.0": ' + "9" * 5000 + "}", "cut_invalid JSON", id="endless number"),
        pytest.param('{"0.0": ' + "[" * 100_000, "cut_invalid JSON", id="endless nesting"),
        ("0.0=1, 7.3=2", "cut_invalid 7.3 because"),
    ],
)
def test_what_is_not_the_text_of_a_cut_is_refused(text: str, reason: str) -> None:
    with raises(reason):
        StreamCut.parse(text, ALL)


def test_spaces_in_the_text_do_not_matter() -> None:
    expected = {A.segment_id: 3, D.segment_id: FUTURE}
    assert read_text(" 0.0 = 3 ,\n2.1=future ") == expected
    assert read_text(' {"0.0": 3, "2.1": "future"}') == expected
    assert read_entries({"2.1": "future", "0.0": 3}) == expected
