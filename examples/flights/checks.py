"""What must be true at the end of the demo: one function per check, over plain tables.

Tables are pandas DataFrames. `flights` is the input in the order of its appends, with `source_row`
(the row of the csv). `trace` is what the consumer's function received: `batch`, `received` (the
place in the order in which rows came), `source_row`, `tailnum`, `_segment`, `_offset`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

import weir
from weir.errors import Incomplete
from weir.settings import Settings

STATISTICS = ["flights", "departed", "dep_delay", "arrived", "arr_delay"]
BY = ["carrier", "day"]


@dataclass(frozen=True)
class Check:
    """One thing that was checked, whether it holds, and the numbers that show it."""

    what: str
    ok: bool
    found: str

    def __str__(self) -> str:
        return f"{'ok    ' if self.ok else 'FAILED'}  {self.what}: {self.found}"


def equal(what: str, **counts: int) -> Check:
    """Check that all counts are equal; their names say what was counted (`_` is a blank)."""
    same = len(set(counts.values())) == 1
    names = [name.replace("_", " ") for name in counts]
    if same:
        found = f"{next(iter(counts.values())):,} {', '.join(names[:-1])} and {names[-1]}"
    else:
        found = ", ".join(f"{count:,} {n}" for n, count in zip(names, counts.values(), strict=True))
    return Check(what, same, found)


def each_flight_once(flights: pd.DataFrame, trace: pd.DataFrame) -> Check:
    """Check that the function received every flight of the input, and each of them once."""
    times = trace["source_row"].value_counts()
    expected = set(flights["source_row"])
    missing = expected - set(times.index)
    foreign = set(times.index) - expected
    repeated = times[times > 1]
    found = f"{len(expected):,} in, {len(trace):,} read"
    for rows, problem in ((missing, "missing"), (foreign, "not of the input"),
                          (set(repeated.index), "more than once")):  # fmt: skip
        if rows:
            found += f"; {len(rows):,} {problem}, such as the flight of row {min(rows)}"
    return Check(
        "every flight was read exactly once", not (missing or foreign or len(repeated)), found
    )


def order_per_key(flights: pd.DataFrame, trace: pd.DataFrame) -> Check:
    """Check that the flights of each aircraft were read in the order in which they were appended.

    Flights without a tail number have no key, and no order was promised for them.
    """
    appended = pd.Series(range(len(flights)), index=flights["source_row"])
    keyed = trace[trace["tailnum"].notna()].sort_values(["batch", "received"])
    place = keyed["source_row"].map(appended)
    before = place.groupby(keyed["tailnum"]).shift()
    wrong = keyed[place <= before]
    found = f"{keyed['tailnum'].nunique():,} aircraft, {len(keyed):,} flights"
    if len(wrong):
        one = wrong.iloc[0]
        found += (
            f"; {len(wrong):,} came too late, such as the flight of row {one['source_row']} of "
            f"{one['tailnum']} (batch {one['batch']}, offset {one['_offset']})"
        )
    return Check("the flights of each aircraft were read in order", wrong.empty, found)


def offsets_in_order(trace: pd.DataFrame) -> Check:
    """Check that each segment was read as 0, 1, 2 ...: nothing left out, nothing twice, in
    order.
    """
    ordered = trace.sort_values(["batch", "received"])
    place = ordered.groupby("_segment").cumcount()
    wrong = ordered[place != ordered["_offset"]]
    found = f"{ordered['_segment'].nunique()} segments, {len(ordered):,} offsets"
    if len(wrong):
        one = wrong.iloc[0]
        found += (
            f"; event {place[wrong.index[0]]} of segment {one['_segment']} had offset "
            f"{one['_offset']}"
        )
    return Check("each segment was read from offset 0 without a gap", wrong.empty, found)


def statistics_of(flights: pd.DataFrame) -> pd.DataFrame:
    """Return the delays per carrier and day, computed from the input without Weir."""
    day = pd.to_datetime(flights[["year", "month", "day"]]).dt.date
    by = flights.assign(day=day).groupby(BY)
    return by.agg(
        flights=("source_row", "size"),
        departed=("dep_delay", "count"),
        dep_delay=("dep_delay", "sum"),
        arrived=("arr_delay", "count"),
        arr_delay=("arr_delay", "sum"),
    ).astype("int64")


def added_up(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the partial statistics of all batches, added up per carrier and day."""
    return parts.groupby(BY)[STATISTICS].sum().astype("int64")


def same_statistics(where: str, flights: pd.DataFrame, parts: pd.DataFrame) -> Check:
    """Check that the partial statistics found in `where` add up to those of the input."""
    expected, found = statistics_of(flights), added_up(parts)
    both = expected.join(found, how="outer", lsuffix=" expected", rsuffix=" found")
    differs = [both[f"{name} expected"] != both[f"{name} found"] for name in STATISTICS]
    wrong = both[pd.concat(differs, axis=1).any(axis=1)]
    numbers = f"{len(parts):,} parts, {len(found):,} carrier-days"
    if len(wrong):
        carrier, day = wrong.index[0]
        numbers += f"; {len(wrong):,} differ, such as {carrier} on {day}"
    return Check(f"the statistics in {where} add up to the input's", wrong.empty, numbers)


def quarantined(rows: int, without_key: int, events: int, rejected: int) -> Check:
    """Check that rows in = events + quarantined, and that only rows without a key were
    quarantined.
    """
    return Check(
        "rows in = events + quarantined",
        rows == events + rejected and rejected == without_key,
        f"{rows:,} = {events:,} + {rejected:,} ({without_key:,} rows have no tail number)",
    )


def scaled_by_load(decisions: Sequence[Any]) -> Check:
    """Check that the busy days split segments, and the quiet after them merged what was split."""
    actions = [decision.action for decision in decisions]
    ok = actions[:1] == ["split"] and actions[-1:] == ["merge"]
    return Check("segments follow the load", ok, ", then ".join(actions) or "no scale")


def files_gone(truncated: Iterable[Path]) -> Check:
    """Check that the files of truncated events are no longer on disk."""
    paths = list(truncated)
    left = [path for path in paths if path.exists()]
    found = f"{len(paths)} files, of which {len(left)} are left"
    if left:
        found += f", such as {left[0]}"
    return Check("the files of truncated events are deleted", bool(paths) and not left, found)


def files_are_those_listed(
    warehouse: Path, listed: Iterable[str], garbage: Iterable[str] = ()
) -> Check:
    """Check that the Parquet files on disk are those that the metadata lists, no more and no less.

    `garbage`: files, and folders ending in a slash, that will be deleted; they do not count.
    """
    named = set(listed)
    there = {str(path.relative_to(warehouse)) for path in warehouse.rglob("*.parquet")}
    there = {path for path in there if not path.startswith(tuple(garbage))}
    found = f"{len(there)} on disk, {len(named)} listed"
    for paths, problem in ((there - named, "only on disk"), (named - there, "missing")):
        if paths:
            found += f"; {len(paths)} {problem}, such as {min(paths)}"
    return Check("the files on disk are those that the metadata lists", there == named, found)


def proven(settings: Settings, replayed: str) -> Check:
    """Check by the audit of the ledger that each event was read once, is unread, or is lost for a
    reason that is written down; and that it finds the stream `replayed`, whose recorded times the
    demo has set back."""
    with weir.open(settings=settings) as store:
        try:
            done: Mapping[str, Any] = store.audit(everything=True, files=True)
        except Incomplete as error:
            done = error.report
    of_clocks = ("commit_not_whole", "commit_unknown")
    clocks = [one for one in done["counter_examples"] if one["kind"] in of_clocks]
    others = [one["what"] for one in done["counter_examples"] if one["kind"] not in of_clocks]
    changed = sorted({str(one["stream"]) for one in clocks})
    found = (
        f"{done['streams']} streams and {done['groups']} reader groups, with their files; "
        f"clocks were changed in {', '.join(changed) or 'none'}{'; '.join(['', *others[:1]])}"
    )
    what = "the audit proves the ledger, and sees that the replay set clocks back"
    return Check(what, changed == [replayed] and not others, found)
