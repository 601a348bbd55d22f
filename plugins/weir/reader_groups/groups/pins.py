"""Pins: ranges of keys of a stream that only readers with one label read.

A label is a person's name for a reader and the same in every run: an argument of its task, or the
task's map index. While no reader has the label, all readers share the range, so that nothing waits
for a reader that may not come. A reader of the label that joins gets the range as soon as the
batches that are open on it are committed.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from sqlalchemy import Connection

from weir.errors import InvalidInput
from weir.model.key_space import KeyRange, check_range
from weir.model.names import StreamName, reader_label, stream_name
from weir.model.segment import Segment
from weir.queries.reader_groups.groups import pins as sql
from weir.reader_groups.locks import LockedGroup
from weir.reader_groups.positions import Key, Position

_PIN = re.compile(r"(\S+)\s+([0-9.e-]+?)\.\.([0-9.e-]+)\s+(\S+)")
Pinned = Mapping[int, Sequence[tuple[KeyRange, str]]]  # by stream id: keys and their label


class Pin(NamedTuple):
    """A range of keys, and the label of its readers; written `nyc/flights 0.25..0.5 big`."""

    stream: StreamName
    keys: KeyRange
    label: str

    @classmethod
    def parse(cls, text: str) -> "Pin":
        """Return the pin that is written. Raises InvalidInput."""
        match = _PIN.fullmatch(text.strip())
        try:
            keys = KeyRange(float(match[2]), float(match[3])) if match else None
        except ValueError:
            keys = None
        if match is None or keys is None:
            raise InvalidInput(
                "argument_invalid",
                f"{text!r} is not a pin; write a stream, a range of its keys and the label of a "
                "reader, such as nyc/flights 0.25..0.5 big.",
            )
        check_range(keys)
        return cls(stream_name(match[1]), keys, reader_label(match[4]))

    def __str__(self) -> str:
        return f"{self.stream} {self.keys.low!r}..{self.keys.high!r} {self.label}"


def check_disjoint(pins: Collection[Pin]) -> None:
    """Check that no key is pinned twice. Raises InvalidInput."""
    for first, second in pairwise(sorted(pins)):
        if first.stream == second.stream and second.keys.low < first.keys.high:
            raise InvalidInput(
                "argument_invalid",
                f"the pins {first} and {second} overlap; pin each key only once.",
            )


def replace_pins(
    connection: Connection,
    group: LockedGroup,
    streams: Mapping[StreamName, int],
    pins: Sequence[Pin],
) -> None:
    """Replace all pins of a group. `streams`: the streams that it reads, with their ids.

    Raises InvalidInput for a pin of another stream.
    """
    for pin in pins:
        if pin.stream not in streams:
            raise InvalidInput(
                "group_unsuitable",
                f"reader group {group.name} does not read stream {pin.stream}; pin keys of the "
                f"streams that it reads: {', '.join(map(str, streams))}.",
            )
    sql.delete(connection, group_id=group.group_id)
    sql.insert(
        connection,
        group_id=group.group_id,
        streams=[streams[pin.stream] for pin in pins],
        lows=[pin.keys.low for pin in pins],
        highs=[pin.keys.high for pin in pins],
        labels=[pin.label for pin in pins],
    )


def read_pins(connection: Connection, group: LockedGroup) -> Pinned:
    """Return the pins of a group by stream id."""
    rows = sql.pins(connection, group_id=group.group_id)
    found: dict[int, list[tuple[KeyRange, str]]] = {}
    for row in rows:
        found.setdefault(row.stream_id, []).append((KeyRange(row.key_low, row.key_high), row.label))
    return found


def reserved(
    positions: Sequence[Position],
    pins: Pinned,
    labels: Mapping[str, str],
    expected: Sequence[str] = (),
) -> dict[Key, frozenset[str]]:
    """Return by pinned position the readers that may own it: those with the label of the pin.

    A segment is pinned if any of its keys is. If two pins share it, the one with more of its keys
    decides. `labels`: the label of each reader that has joined. If none has the label, the position
    is kept for the `expected` readers; if there are none either, any reader may own it.
    """
    found = {}
    for position in positions:
        label = _label(position.segment, pins.get(position.stream_id, ()))
        if label is not None:
            readers = [reader for reader, known in labels.items() if known == label] or expected
            if readers:
                found[position.key] = frozenset(readers)
    return found


def _label(segment: Segment, pins: Sequence[tuple[KeyRange, str]]) -> str | None:
    """Return the label of the pin with most of a segment's keys, or None if it is not pinned."""
    shares = [
        (min(segment.key_high, keys.high) - max(segment.key_low, keys.low), label)
        for keys, label in pins
        if keys.low < segment.key_high and segment.key_low < keys.high
    ]
    return max(shares, key=lambda share: share[0])[1] if shares else None
