"""The quotes of csv files: where rows end, and the same text as RFC 4180 has it.

These are facts about all bytes of a text at once. A text in which a quote stands where RFC 4180 has
none is not regular, and only its fields, one after another, say what it means.
"""

import re
from dataclasses import dataclass

import numpy as np

from weir.kernel.text_options import TextOptions

# A line of nothing else is no row, as Spark trims it, also where one of these separates values.
BLANKS = "".join(map(chr, range(33)))
_BLANK_LINE = re.compile(rb"[\r\n][\x00-\x09\x0b\x0c\x0e-\x20]+(?![^\r\n])")
_NEWLINE, _RETURN = 10, 13

Places = np.ndarray[tuple[int], np.dtype[np.int64]]
Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


class NotRegular(Exception):
    """The quotes of a text are not those of RFC 4180."""


@dataclass(frozen=True)
class Crossing:
    """Where a row may begin in a part of a file: how many quotes the part has, and the place after
    the first newline that has an even (`even`) or an odd number of them before it; -1 if none."""

    quotes: int
    even: int
    odd: int


def may_be_regular(how: TextOptions) -> bool:
    """Return whether texts that are written so can be looked at byte by byte."""
    return "".join((how.separator, how.quote, how.escape, how.comment)).isascii()


def crossing(text: bytes, how: TextOptions) -> Crossing:
    """Return where a row may begin in a part of a file."""
    whole = np.frombuffer(text, np.uint8)
    quotes = _quotes(whole, how)
    ends = np.flatnonzero(whole == _NEWLINE)
    odd = np.searchsorted(quotes, ends) % 2 == 1
    first = [int(ends[np.argmax(test)]) + 1 if test.any() else -1 for test in (~odd, odd)]
    return Crossing(len(quotes), *first)


def end_of_rows(text: bytes, how: TextOptions) -> int:
    """Return where the last row of the beginning of a file ends that has an end; 0 if none has."""
    whole = np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(whole == _NEWLINE)
    if not len(ends):  # a carriage return that is last may be half of a line end
        ends = np.flatnonzero(whole[:-1] == _RETURN)
    ends = ends[np.searchsorted(_quotes(whole, how), ends) % 2 == 0]
    return int(ends[-1]) + 1 if len(ends) else 0


def regular(text: bytes, columns: int, how: TextOptions) -> bytes:
    """Return a text as RFC 4180 has it: without comments, and with doubled quotes. Raises
    NotRegular if a quote does not open a field, close one, or stand for itself within one."""
    if not may_be_regular(how):
        raise NotRegular
    if how.comment:
        text = _without_comments(text, how)
    if how.quote and how.escape not in ("", how.quote):
        text = _without_escapes(text, how)
    elif how.quote:
        whole = np.frombuffer(text, np.uint8)
        _check(whole, _quotes(whole, how), how, doubled=True)
    # Of as many values as there are columns, pyarrow takes a line of blanks for a row.
    if (columns == 1 or how.separator in BLANKS) and _BLANK_LINE.search(b"\n" + text):
        if how.quote and how.quote.encode() in text:
            raise NotRegular
        text = _BLANK_LINE.sub(b"\n", b"\n" + text)
    return text


def _quotes(whole: Bytes, how: TextOptions) -> Places:
    """Return the places of the quotes that open or close something, if escaped ones are within."""
    if not how.quote:
        return np.arange(0)
    places = np.flatnonzero(whole == ord(how.quote))
    if how.escape in ("", how.quote):
        return places
    escapes = _escapes(whole, how)
    return places[~np.isin(places - 1, escapes)]


def _escapes(whole: Bytes, how: TextOptions) -> Places:
    """Return the places of the escapes that no escape stands before, so that they count."""
    places = np.flatnonzero(whole == ord(how.escape))
    if not len(places):
        return places
    begins = np.flatnonzero(np.diff(places, prepend=-2) > 1)  # of each run of them
    lengths = np.diff(np.append(begins, len(places)))
    within = np.arange(len(places)) - np.repeat(begins, lengths)
    counts: Places = places[within % 2 == 0]
    return counts


def _check(whole: Bytes, quotes: Places, how: TextOptions, *, doubled: bool) -> None:
    """Raise NotRegular if one of the quotes neither opens nor closes a field. `doubled`: two of
    them within a field stand for one."""
    if not how.quote:
        return
    beside = np.zeros(256, bool)
    beside[[ord(how.separator), _NEWLINE, _RETURN]] = True
    beside[ord(how.quote)] = doubled
    opens, closes = quotes[::2], quotes[1::2]
    # What opens after a quote is the second of a doubled one: the first has closed.
    before, after = whole[opens[opens > 0] - 1], whole[closes[closes + 1 < len(whole)] + 1]
    if len(quotes) % 2 or not beside[before].all() or not beside[after].all():
        raise NotRegular


def _without_comments(text: bytes, how: TextOptions) -> bytes:
    """Return a text without the lines that are comments."""
    whole = np.frombuffer(text, np.uint8)
    lines = np.append(0, np.flatnonzero((whole == _NEWLINE) | (whole == _RETURN)) + 1)
    lines = lines[lines < len(whole)]
    found = lines[whole[lines] == ord(how.comment)]
    if not len(found):
        return text
    found = found[np.searchsorted(_quotes(whole, how), found) % 2 == 0]
    ends = np.append(lines, len(whole))[np.searchsorted(lines, found) + 1]
    kept, place = [], 0
    for begin, end in zip(found.tolist(), ends.tolist(), strict=True):
        if how.quote and how.quote.encode() in text[begin:end]:
            raise NotRegular  # it counts as one that opens
        kept.append(text[place:begin])
        place = end
    return b"".join([*kept, text[place:]])


def _without_escapes(text: bytes, how: TextOptions) -> bytes:
    """Return a text in which quotes within fields are doubled."""
    whole = np.frombuffer(text, np.uint8)
    quotes = _quotes(whole, how)
    _check(whole, quotes, how, doubled=False)
    escapes = _escapes(whole, how)
    escapes = escapes[escapes + 1 < len(whole)]
    of = whole[escapes + 1]
    inside = np.searchsorted(quotes, escapes) % 2 == 1
    if ((of == ord(how.quote)) & ~inside).any():
        raise NotRegular
    changed, kept = whole.copy(), np.ones(len(whole), bool)
    changed[escapes[inside & (of == ord(how.quote))]] = ord(how.quote)
    kept[escapes[inside & (of == ord(how.escape))]] = False
    return changed[kept].tobytes()
