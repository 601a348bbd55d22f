"""Starting points as people write them: where a group begins, ends or goes back to.

A starting point is `head`, `tail`, a time (`2013-06-01T00:00:00Z`, with the word `time` before it
or without), `event time 2013-06-01T00:00:00Z`, `checkpoint NAME` (of a group), or a stream cut: for
one stream `0.0=12, 5.1=future`, for several `{"nyc/flights": {"0.0": 12}, ...}`. The streams are
locked meanwhile, so that a starting point does not move. A time is closed first: no later commit
gets a clock before it. An event time stands for the time of a commit (`event_time_points`).
`head` is a word for what is left, so it needs no flag where events are gone; all else does.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Connection

from weir.controller.cuts import check_cut, load_cuts
from weir.controller.epochs import close
from weir.controller.locks import LockedStream
from weir.controller.queries import stream_cut_at
from weir.controller.times import parse_time
from weir.controller.truncation import parse_cut
from weir.errors import InvalidInput, NotFound
from weir.model.stream_cut import StreamCut
from weir.queries.reader_groups import starting_points as sql
from weir.reader_groups.event_time_points import commits_at, event_time_of

Cuts = dict[int, StreamCut]  # by stream id
_BEGINS_AS_A_TIME = re.compile(r"[0-9]{4}-[0-9]{2}")  # no cut does


def find_cuts(
    connection: Connection,
    streams: Sequence[LockedStream],
    starting_point: str,
    group_id: int | None = None,
    *,
    as_end: bool = False,
) -> Cuts:
    """Return the cut that a starting point means in each of the locked streams, by stream id.

    `group_id`: the group whose checkpoints may be named. `as_end`: an event time is that of an end
    (semantics 8.4). Raises InvalidInput for an invalid starting point, and NotFound for a
    checkpoint.
    """
    if (event_time := event_time_of(starting_point)) is not None:
        found = commits_at(connection, streams, event_time, as_end=as_end)
        return {s: load_cuts(connection, s, commit.cut)[0] for s, commit in found.items()}
    word, _, rest = starting_point.strip().partition(" ")
    if word in ("head", "tail") and not rest:
        return _ends(connection, streams, word)
    if word == "time":
        return _at(connection, streams, rest)
    if word == "checkpoint":
        if group_id is None:
            raise InvalidInput(
                "position_invalid",
                "a checkpoint belongs to a reader group; name the group that has it.",
            )
        return _at_checkpoint(connection, streams, rest.strip(), group_id)
    if _BEGINS_AS_A_TIME.match(starting_point.strip()):
        return _at(connection, streams, starting_point)
    return _written(connection, streams, starting_point)


def times_of(
    connection: Connection, streams: Sequence[LockedStream], written: str, *, as_end: bool = False
) -> dict[int, datetime]:
    """Return the times of commit that a starting point stands for, by stream id; none if it is no
    time."""
    if (event_time := event_time_of(written)) is not None:
        found = commits_at(connection, streams, event_time, as_end=as_end)
        return {stream_id: commit.at for stream_id, commit in found.items()}
    if (at := time_of(written)) is None:
        return {}
    return dict.fromkeys((stream.stream_id for stream in streams), at)


def time_of(written: str) -> datetime | None:
    """Return the time that a starting point is; None if it is something else. Raises InvalidInput
    for what is no time after the word `time`."""
    word, _, rest = written.strip().partition(" ")
    if word != "time" and not _BEGINS_AS_A_TIME.match(written.strip()):
        return None
    return parse_time(rest if word == "time" else written)


def _ends(connection: Connection, streams: Sequence[LockedStream], which: str) -> Cuts:
    rows = sql.ends(connection, which=which, ids=[stream.stream_id for stream in streams])
    return {row.stream_id: load_cuts(connection, row.stream_id, row.cut)[0] for row in rows}


def _at(connection: Connection, streams: Sequence[LockedStream], written: str) -> Cuts:
    at = parse_time(written)
    clock = sql.clock_of(connection, at=at)
    close(connection, streams, clock)
    return {
        s.stream_id: load_cuts(connection, s.stream_id, stream_cut_at(connection, s.name, at))[0]
        for s in streams
    }


def _at_checkpoint(
    connection: Connection, streams: Sequence[LockedStream], name: str, group_id: int
) -> Cuts:
    row = sql.checkpoint(connection, group_id=group_id, name=name)
    if row is None:
        raise NotFound(
            "checkpoint_not_found",
            f"the reader group has no checkpoint {name!r}; the view weir.checkpoints lists them.",
        )
    if row.state != "complete":
        raise InvalidInput(
            "position_invalid",
            f"checkpoint {name!r} is {row.state}; only a complete checkpoint can be a "
            "starting point.",
        )
    cuts = {}
    for stream in streams:
        if str(stream.stream_id) not in row.cuts:
            raise InvalidInput(
                "position_invalid",
                f"checkpoint {name!r} has no stream cut of stream {stream.name}; choose a "
                "checkpoint that was made when the group read it.",
            )
        (cuts[stream.stream_id],) = load_cuts(
            connection, stream.stream_id, row.cuts[str(stream.stream_id)]
        )
    return cuts


def _written(connection: Connection, streams: Sequence[LockedStream], starting_point: str) -> Cuts:
    if "=" not in starting_point and "{" not in starting_point:
        raise InvalidInput(
            "position_invalid",
            f"{starting_point!r} is not a starting point; write head, tail, time "
            "2013-06-01T00:00:00Z, event time 2013-06-01T00:00:00Z, checkpoint NAME, or a stream "
            "cut such as 0.0=12, 1.0=7.",
        )
    names = [str(stream.name) for stream in streams]
    given = by_stream(names, starting_point)
    cuts = {}
    for stream in streams:
        if str(stream.name) not in given:
            raise InvalidInput(
                "position_invalid",
                f"{starting_point!r} has no cut of stream {stream.name}; write head, tail, a time "
                'or, for several streams, {"scope/stream": {"0.0": 12}, ...}.',
            )
        cut = parse_cut(connection, stream, given[str(stream.name)])
        check_cut(connection, stream.stream_id, cut)
        cuts[stream.stream_id] = cut
    if others := sorted(given.keys() - set(names)):
        raise InvalidInput(
            "position_invalid",
            f"{starting_point!r} names {', '.join(others)}, but only a cut of "
            f"{', '.join(names)} is needed; leave the rest out.",
        )
    return cuts


def by_stream(names: Sequence[str], written: str) -> Mapping[str, str]:
    """Return the written cut of each stream: for one stream `0.0=12`, for several from JSON by
    name."""
    try:
        value: object = json.loads(written)
    except ValueError:
        value = None
    if isinstance(value, dict) and any("/" in key for key in value):
        return {k: v if isinstance(v, str) else json.dumps(v) for k, v in value.items()}
    return {names[0]: written} if len(names) == 1 else {}
