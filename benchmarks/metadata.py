"""Metadata operations on a year of history, a scale every second, beside the same on 1,000 epochs.

Both streams are in the same tables. A small run has 300,000 epochs in place of 31.5 million.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from sqlalchemy import Connection, text

from benchmarks.figure import Figure
from benchmarks.history import SLOTS, History, build, middle
from benchmarks.kept_files import why_kept
from benchmarks.metadata_changes import committed, scaled, truncated
from benchmarks.setting import Setting
from tests.watching import count_statements
from tests.world import questions as queries
from weir.controller.cuts import check_cut, load_cuts
from weir.database.connection import Database
from weir.model.names import stream_name

LONG = 31_536_000
SHORT = 1000
ARGUMENTS = 50  # per query; what they touch fits into Postgres' cache


def _histories(setting: Setting) -> tuple[History, History]:
    """Return the long history and the short one, which all figures share."""
    cached = setting.__dict__.get("_histories")
    if cached is None:
        setting.durable(False)
        wanted = {
            stream_name("bench/short"): SHORT,
            stream_name("bench/long"): LONG if setting.full else 300_000,
        }
        short, long = build(setting.server.dsn("weir", "postgres"), wanted)
        cached = setting.__dict__["_histories"] = long, short
    return cached


@dataclass(frozen=True)
class Query:
    """Something to ask, which must be one statement, and how its arguments are chosen."""

    what: str
    ask: Callable[[Connection, History, Any], object]
    choose: Callable[[Connection, History, int], Any]  # for a random epoch
    repeat: int = 2  # so that a run takes long enough to be timed


_QUERIES = {
    "active_now": Query(
        "the active segments",
        lambda c, h, _: queries.active_segments(c, h.name),
        lambda c, h, epoch: None,
    ),
    "active_at": Query(
        "the segments active at a random time",
        lambda c, h, at: queries.active_segments(c, h.name, at),
        lambda c, h, epoch: h.time(epoch),
    ),
    "epoch_at": Query(
        "the epoch at a random time",
        lambda c, h, at: queries.epoch_at(c, h.name, at),
        lambda c, h, epoch: h.time(epoch),
        repeat=20,
    ),
    "successors": Query(
        "the successors of a random segment",
        lambda c, h, segment: queries.successors(c, h.name, segment),
        lambda c, h, epoch: h.segments(c, epoch)[epoch % SLOTS].name,
        repeat=20,
    ),
    "segments_between": Query(
        "the segments between two cuts 100 epochs apart",
        lambda c, h, cuts: queries.segments_between(c, h.name, *cuts),
        lambda c, h, epoch: (h.cut(c, epoch), h.cut(c, epoch + 100)),
    ),
    "size_till": Query(
        "the size till a cut whose oldest and newest epochs are 10 apart",
        lambda c, h, cut: queries.size_till(c, h.name, cut),
        lambda c, h, epoch: _mixed(c, h, epoch),
    ),
    "cut_validity": Query(
        "whether a cut is valid",
        lambda c, h, cut: check_cut(c, h.stream_id, cut),
        lambda c, h, epoch: load_cuts(c, h.stream_id, h.cut(c, epoch))[0],
    ),
}

# What people ask the views (tests/sql/test_view_cost.py has more of it, and counts pages).
_VIEWS = {
    "streams": "streams WHERE stream = :stream",
    "epoch": "epochs WHERE stream = :stream AND epoch = :epoch",
    "epoch_of_time": "epochs WHERE stream = :stream AND created_at <= :at"
    " ORDER BY created_at DESC LIMIT 1",
    "last_epochs": "epochs WHERE stream = :stream ORDER BY epoch DESC LIMIT 10",
    "epoch_record": "epoch_record WHERE stream = :stream AND epoch = :epoch",
    "last_epoch_records": "epoch_record WHERE stream = :stream ORDER BY epoch DESC LIMIT 10",
    "current_epoch": "current_epoch_record WHERE stream = :stream",
    "transition": "epoch_transition WHERE stream = :stream AND epoch = :epoch",
    "last_transitions": "epoch_transition WHERE stream = :stream ORDER BY epoch DESC LIMIT 10",
    "history_chunk": "history_time_index WHERE stream = :stream AND chunk = :chunk",
    "chunk_of_time": "history_time_index WHERE stream = :stream AND begins_at <= :at"
    " ORDER BY begins_at DESC LIMIT 1",
    "segment": "segments WHERE stream = :stream AND segment = :segment",
    "active_segments": "segments WHERE stream = :stream AND active",
    "segments_of_epoch": "segments WHERE stream = :stream AND creation_epoch = :epoch",
    "sealed_segment": "segment_sealed_record WHERE stream = :stream AND segment = :segment",
    "sealed_size": "sealed_segment_shard WHERE stream = :stream AND segment = :segment",
    "truncation": "truncation_record WHERE stream = :stream",
}


def _of_view(name: str, asked: str) -> Query:
    return Query(
        f"one question of the view {asked.split()[0]} ({name})",
        lambda c, h, given: c.execute(
            text(f"SELECT * FROM {asked}"),  # noqa: S608 - one of the constants above
            given,
        ).all(),
        lambda c, h, epoch: {
            key: value for key, value in _about(c, h, epoch).items() if f":{key}" in asked
        },
    )


_QUERIES |= {f"view_{name}": _of_view(name, asked) for name, asked in _VIEWS.items()}


def _about(connection: Connection, history: History, epoch: int) -> dict[str, Any]:
    """Return what a view is asked about, around an epoch: the parameters of its query."""
    return {
        "stream": str(history.name), "epoch": epoch, "at": history.time(epoch),
        "chunk": epoch // 1000, "segment": history.segments(connection, epoch)[epoch % SLOTS].name,
    }  # fmt: skip


def _mixed(connection: Connection, history: History, epoch: int) -> queries.Cut:
    """Return a cut with one half of the keys in an epoch, and the other half 10 epochs before.

    The two slots that the first and the last of these epochs touched are in different halves.
    """
    epoch = epoch // SLOTS * SLOTS + 5
    later = [s for s in history.segments(connection, epoch) if s.key_low < 0.5]
    earlier = [s for s in history.segments(connection, epoch - 10) if s.key_low >= 0.5]
    return middle(later + earlier)


def _asked(setting: Setting, history: History, query: Query) -> Callable[[], None]:
    """Return a run of a query with random arguments, which are the same in each run."""
    random = Random(7)
    chosen = setting.database.transaction(
        lambda c: [
            query.choose(c, history, random.randrange(2 * SLOTS, history.epochs - 2 * SLOTS))
            for _ in range(ARGUMENTS)
        ]
    )
    database = Database.of(setting.settings)
    statements = count_statements(database)
    database.transaction(lambda c: query.ask(c, history, chosen[0]))
    database.dispose()
    assert len(statements) == 1, statements

    def run() -> None:
        def ask_all(connection: Connection) -> None:
            for _ in range(query.repeat):
                for argument in chosen:
                    query.ask(connection, history, argument)

        setting.database.transaction(ask_all)

    return run


def _asking(name: str, setting: Setting) -> Figure:
    query = _QUERIES[name]
    long, short = _histories(setting)
    return _beside_short(
        name,
        f"{query.what}, {ARGUMENTS * query.repeat} times",
        _asked(setting, long, query),
        _asked(setting, short, query),
        long,
    )


def _beside_short(
    name: str,
    what: str,
    ours: Callable[[], float | None],
    reference: Callable[[], float | None],
    long: History,
) -> Figure:
    return Figure(
        f"metadata/{name}",
        f"{what}: a stream of {long.epochs:,} epochs beside one of {SHORT:,}",
        ours,
        reference,
        limit=2,
        goal=1.2,
        small_runs=4 if name.startswith("view_") else 2,  # short and noisy
    )


def at_time_cost(setting: Setting) -> Figure:
    """Return the figure of asking for the segments at a time, beside reading their rows by primary
    key."""
    long, _ = _histories(setting)
    by_key = Query(
        "",
        lambda c, h, ids: c.execute(
            text(
                """SELECT segment_id, key_low, key_high FROM segment
                WHERE stream_id = :s AND segment_id = ANY(:ids) ORDER BY key_low"""
            ),
            {"s": h.stream_id, "ids": ids},
        ).all(),
        lambda c, h, epoch: [s.segment_id for s in h.segments(c, epoch)],
    )
    return Figure(
        "metadata/at_time_cost",
        f"the segments active at a random time, 100 times, beside reading the same {long.epochs:,} "
        "epochs' rows by primary key",
        _asked(setting, long, _QUERIES["active_at"]),
        _asked(setting, long, by_key),
        limit=5,
    )


def size_distance(setting: Setting) -> Figure:
    """Return the figure of the size till a cut far back, beside a cut near the tail."""
    long, _ = _histories(setting)
    far = 10_000_000 if setting.full else 100_000

    def back(distance: int) -> Query:
        return Query(
            "",
            lambda c, h, cut: queries.size_till(c, h.name, cut),
            lambda c, h, epoch: dict.fromkeys(h.cut(c, h.epochs - distance), 0),
        )

    return Figure(
        "metadata/size_distance",
        f"the size till a cut {far:,} epochs back beside one 10 epochs back, 100 times",
        _asked(setting, long, back(far)),
        _asked(setting, long, back(10)),
        limit=1.5,
    )


def _why_kept(setting: Setting) -> Figure:
    """Return the figure of why files are kept. It needs the histories in the same tables, because
    they decide how Postgres joins."""
    _histories(setting)
    return why_kept(setting)


def _changing(
    name: str, what: str, run: Callable[[Setting, History], Callable[[], Any]], setting: Setting
) -> Figure:
    long, short = _histories(setting)
    return _beside_short(name, what, run(setting, long), run(setting, short), long)


FIGURES = {
    **{f"metadata/{name}": partial(_asking, name) for name in _QUERIES},
    "metadata/at_time_cost": at_time_cost,
    "metadata/size_distance": size_distance,
    "metadata/why_kept": _why_kept,
    # These figures come last, because they change the histories.
    "metadata/commit": partial(_changing, "commit", "100 commits of a file", committed),
    "metadata/scale": partial(_changing, "scale", "40 scales", scaled),
    "metadata/truncate": partial(_changing, "truncate", "30 truncations", truncated),
}
