"""What `weir top` shows: one screen of rows, with how old they are. Pure, but for rich."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from weir.errors import counted
from weir.terminal.printing import duration, visible
from weir.terminal.top_rows import View

AROUND = 4  # lines that are no rows: what is shown, its filter or failure, titles, keys
Row = Mapping[str, Any]


def size(held: int) -> str:
    """Return bytes in few letters: 512 B, 1.5 kB, 20 MB."""
    amount = float(held)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 999.5:
            return f"{amount:.3g} {unit}"
        amount /= 1000
    return f"{amount:,.0f} PB"


class Column(NamedTuple):
    """A column, from a width of the terminal on: its cells, and which stand out."""

    title: str
    width: int
    cell: Callable[[Row], str]
    name: bool = False
    worth: Callable[[Row], bool] = lambda row: False


def _rate(row: Row) -> str:
    return "" if row.get("rate") is None else f"{row['rate']:,.0f}"


def _since(value: timedelta | None) -> str:
    return "" if not value else duration(value)


def _behind(row: Row) -> bool:
    return bool(row["unread_events"])


STREAMS = (
    Column("stream", 0, lambda row: row["stream"], name=True),
    Column("events", 0, lambda row: f"{row['events']:,}"),
    Column("/s", 60, _rate, worth=lambda row: bool(row.get("rate"))),
    Column("size", 70, lambda row: size(row["bytes"])),
    Column("segments", 110, lambda row: f"{row['segments']:,}"),
    Column("changed", 90, lambda row: f"{duration(row['unchanged'])} ago"),
    Column("groups", 100, lambda row: f"{row['groups']:,}"),
    Column("unread", 45, lambda row: f"{row['unread_events']:,}", worth=_behind),
    Column("behind", 55, lambda row: _since(row["waiting"]), worth=_behind),
    Column("furthest behind", 120, lambda row: row["reader_group"] or "", name=True),
    Column("", 80, lambda row: "" if row["state"] == "active" else row["state"]),
)
GROUPS = (
    Column("reader group", 0, lambda row: row["reader_group"], name=True),
    Column("stream", 60, lambda row: row["stream"], name=True),
    Column("unread", 0, lambda row: f"{row['unread_events']:,}", worth=_behind),
    Column("/s", 75, _rate),
    Column("size", 90, lambda row: size(row["unread_bytes"])),
    Column("behind", 45, lambda row: _since(row["waiting"]), worth=_behind),
    Column("lost", 80, lambda row: f"{row['lost_events']:,}",
           worth=lambda row: bool(row["lost_events"])),
)  # fmt: skip


@dataclass
class Screen:
    """What is on the screen: the rows as they were `at` that time, and what has happened since.
    `typing`: the filter is being typed. `away`: why there are no newer rows, since when."""

    view: View
    rows: Sequence[Row] = ()
    total: int = 0
    at: datetime | None = None
    took: float = 0.0
    pause: float = 2.0
    typing: str | None = None
    stopped: bool = False
    away: str = ""

    def drawn(self, width: int, high: int, age: float) -> Group:
        """Return the screen for a terminal of this size; `age`: of the rows, in seconds."""
        lines = [self._first(age), self._second(), self.table(width, max(high - AROUND, 1))]
        return Group(*lines, self._keys())

    def _first(self, age: float) -> Text:
        kind = {"streams": "stream", "groups": "reader group and stream"}[self.view.what]
        if self.view.what == "groups" and self.total != 1:
            amount = f"{self.total:,} reader groups and streams"
        else:
            amount = counted(self.total, kind)
        line = Text("weir top", "bold", no_wrap=True, overflow="ellipsis")
        if self.at is None:
            return line.append("  asking the database ...", "not bold")
        line.append(f"  {amount}, by {self.view.order}", "not bold")
        line.append(f"  {self.at:%H:%M:%S} UTC", "not bold")
        if age > self.pause + 2:
            line.append(f", {duration(timedelta(seconds=age))} old", "bold yellow")
        return line

    def _second(self) -> Text:
        line = Text("", no_wrap=True, overflow="ellipsis")
        if self.typing is not None:
            return line.append(f"names with: {visible(self.typing)}\u2588")
        if self.away:
            return line.append(visible(self.away), "bold red")
        if self.view.search:
            line.append(f"names with: {visible(self.view.search)}  ")
        if self.stopped:
            line.append("stopped; space goes on", "bold yellow")
        return line

    def _keys(self) -> Text:
        keys = "q quit  tab streams/groups  o order  / filter  \u2191\u2193 scroll  space stop"
        if self.typing is not None:
            keys = "enter done  esc no filter"
        return Text(keys, "dim", no_wrap=True, overflow="ellipsis")

    def table(self, width: int, most: int) -> Table | Text:
        """Return the rows, with the columns for which there is room."""
        if not self.rows:
            told = "there is none yet" if not self.view.search else "no name has that in it"
            return Text("" if self.at is None else told)
        columns = [
            one
            for one in (STREAMS if self.view.what == "streams" else GROUPS)
            if one.width <= width
        ]
        made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        rows = self.rows[:most]
        longest = [max(len(c.title), *(len(visible(c.cell(row))) for row in rows)) for c in columns]
        # A name is cut off before a number is.
        names = sum(one.name for one in columns)
        taken = sum(n for n, c in zip(longest, columns, strict=True) if not c.name)
        room = (width - taken - 2 * len(columns)) // names
        for one, most_wide in zip(columns, longest, strict=True):
            wide = min(most_wide, max(room, len(one.title), 4)) if one.name else most_wide
            made.add_column(
                Text(one.title), no_wrap=True, overflow="ellipsis", width=wide,
                justify="left" if one.name or not one.title else "right",
            )  # fmt: skip
        for row in rows:
            made.add_row(
                *(
                    Text(visible(one.cell(row)), "bold yellow" if one.worth(row) else "")
                    for one in columns
                )
            )
        return made
