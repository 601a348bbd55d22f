"""The demo's checks find what they are there to find, and its picture shows what there is."""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from flights import checks, demo
from flights.checks import Check
from flights.input import write_input
from flights.report import active
from tests.raises import raises
from weir import settings
from weir.local.installation import Installation
from weir.settings import Settings

SEGMENTS = 3


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """A slice of the input, in the order of its appends."""
    return write_input(tmp_path_factory.mktemp("input"), every=100).flights


@pytest.fixture
def trace(flights: pd.DataFrame) -> pd.DataFrame:
    """What a function receives if all is well: two batches, segments one after the other."""
    segment = flights["tailnum"].map(lambda key: sum(key.encode()) % SEGMENTS, na_action="ignore")
    made = pd.DataFrame(
        {
            "batch": 1 + (flights["month"] > 6),
            "_segment": segment.fillna(0).astype(int),
            "source_row": flights["source_row"],
            "tailnum": flights["tailnum"],
        }
    )
    made["_offset"] = made.groupby("_segment").cumcount()
    made = made.sort_values(["batch", "_segment", "_offset"], ignore_index=True)
    made["received"] = made.groupby("batch").cumcount() + made["_segment"] * (1 << 33)
    return made


def of_one_key(trace: pd.DataFrame) -> pd.Index:
    """The rows of the key with most flights in the first batch."""
    first = trace[trace["batch"] == 1]
    rows: pd.Index = first.index[first["tailnum"] == first["tailnum"].value_counts().index[0]]
    return rows


def swapped(trace: pd.DataFrame) -> pd.DataFrame:
    """Two flights of one aircraft came in the wrong order."""
    a, b = of_one_key(trace)[:2]
    changed = trace.copy()
    changed.loc[[a, b], ["received", "_offset"]] = trace.loc[[b, a], ["received", "_offset"]].values
    return changed


def missing(trace: pd.DataFrame) -> pd.DataFrame:
    """A flight is missing."""
    without: pd.DataFrame = trace.drop(of_one_key(trace)[1])
    return without


def doubled(trace: pd.DataFrame) -> pd.DataFrame:
    """A flight came a second time, at the end of its batch."""
    again = trace.loc[[of_one_key(trace)[0]]].assign(received=1 << 60)
    return pd.concat([trace, again], ignore_index=True)


def later_batch(trace: pd.DataFrame) -> pd.DataFrame:
    """The first flight of an aircraft came with the second batch."""
    changed = trace.copy()
    changed.loc[of_one_key(trace)[0], "batch"] = 3
    return changed


def three(flights: pd.DataFrame, trace: pd.DataFrame) -> list[Check]:
    """The checks that look at what was received."""
    return [
        checks.each_flight_once(flights, trace),
        checks.order_per_key(flights, trace),
        checks.offsets_in_order(trace),
    ]


def test_all_checks_hold_where_all_is_well(flights: pd.DataFrame, trace: pd.DataFrame) -> None:
    shuffled = trace.sample(frac=1, random_state=7)  # in which order it was read back is nothing
    assert [check.ok for check in three(flights, shuffled)] == [True, True, True]


@pytest.mark.parametrize(
    ("damage", "once", "order", "offsets"),
    [
        (missing, False, True, False),
        (doubled, False, False, False),
        (swapped, True, False, True),
        (later_batch, True, False, False),
    ],
)
def test_damage_is_found(
    flights: pd.DataFrame,
    trace: pd.DataFrame,
    damage: Callable[[pd.DataFrame], pd.DataFrame],
    once: bool,
    order: bool,
    offsets: bool,
) -> None:
    found = three(flights, damage(trace))
    assert [check.ok for check in found] == [once, order, offsets]
    assert all(", such as" in c.found or "offset" in c.found for c in found if not c.ok)


def test_flights_that_are_not_of_the_input_are_found(
    flights: pd.DataFrame, trace: pd.DataFrame
) -> None:
    assert not checks.each_flight_once(flights.iloc[1:], trace).ok


def test_nothing_received_is_not_all_well(flights: pd.DataFrame, trace: pd.DataFrame) -> None:
    assert not checks.each_flight_once(flights, trace.iloc[:0]).ok


def test_flights_without_a_key_have_no_order(flights: pd.DataFrame, trace: pd.DataFrame) -> None:
    keyless = trace.index[trace["tailnum"].isna() & (trace["batch"] == 1)][:2]
    assert len(keyless) == 2
    changed = trace.copy()
    changed.loc[keyless, "received"] = trace.loc[keyless[::-1], "received"].values
    assert checks.order_per_key(flights, changed).ok


def test_partial_statistics_are_added_up(flights: pd.DataFrame) -> None:
    parts = [checks.statistics_of(flights.iloc[i::3]).reset_index() for i in range(3)]
    assert checks.same_statistics("parts", flights, pd.concat(parts)).ok
    assert not checks.same_statistics("twice", flights, pd.concat([*parts, parts[0]])).ok
    assert not checks.same_statistics("missing", flights, pd.concat(parts[1:])).ok
    places: Any = parts[0].loc
    places[0, "arr_delay"] += 1
    assert not checks.same_statistics("changed", flights, pd.concat(parts)).ok
    lost = checks.statistics_of(flights).reset_index().iloc[1:]
    assert not checks.same_statistics("without a carrier-day", flights, lost).ok


def test_counts_and_quarantine() -> None:
    assert checks.equal("same", a=3, b_c=3).found == "3 a and b c"
    assert checks.equal("other", a=3, b_c=4) == Check("other", False, "3 a, 4 b c")
    assert checks.quarantined(rows=10, without_key=2, events=8, rejected=2).ok
    assert not checks.quarantined(rows=10, without_key=2, events=8, rejected=1).ok
    assert not checks.quarantined(rows=10, without_key=2, events=7, rejected=3).ok


def test_files(tmp_path: Path) -> None:
    kept, gone = tmp_path / "kept.parquet", tmp_path / "gone.parquet"
    kept.touch()
    assert checks.files_gone([gone]).ok
    assert not checks.files_gone([gone, kept]).ok
    assert not checks.files_gone([]).ok  # nothing was truncated at all
    assert checks.files_are_those_listed(tmp_path, ["kept.parquet"]).ok
    assert not checks.files_are_those_listed(tmp_path, []).ok
    assert checks.files_are_those_listed(tmp_path, [], ["kept.parquet"]).ok  # about to be deleted
    assert not checks.files_are_those_listed(tmp_path, [], ["other/"]).ok
    assert not checks.files_are_those_listed(tmp_path, ["kept.parquet", "gone.parquet"]).ok


def test_a_failed_check_is_printed_and_makes_the_demo_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    class Nothing:
        """An installation that starts at once, and a story with one check."""

        def __init__(self, *_: object, ok: bool = False) -> None:
            self.airflow = self.spark = self
            self.url, self.passwords_file, self.ok = "http://127.0.0.1:1", tmp_path, ok

        def start(self) -> None: ...

        def want(self, wanted: bool) -> None: ...

        def tell(self) -> demo.Told:
            check = Check("two is two", self.ok, "1, 2")
            return demo.Told([check], "report", [tmp_path / "p.html"])

    monkeypatch.setattr(demo, "Story", lambda i: Nothing())
    assert demo.run(Nothing()) is False  # type: ignore[arg-type]  # it stands for one
    said = capsys.readouterr().out
    assert "FAILED  two is two: 1, 2" in said
    assert "1 of 1 checks FAILED" in said
    monkeypatch.setattr(demo, "Story", lambda i: Nothing(ok=True))
    assert demo.run(Nothing()) is True  # type: ignore[arg-type]  # it stands for one


def test_the_demo_removes_nothing_that_it_did_not_make(tmp_path: Path) -> None:
    (tmp_path / "warehouse").mkdir()
    with (
        raises("folder_not_of_demo"),
        demo.begun_anew(tmp_path),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["warehouse"]


def test_the_demo_begins_anew(tmp_path: Path) -> None:
    with demo.begun_anew(tmp_path / "state") as installation:
        (installation.state / "warehouse").mkdir()
        (installation.state / "warehouse" / "old").touch()
    with demo.begun_anew(tmp_path / "state") as installation:
        assert [path.name for path in installation.state.iterdir()] == ["demo.lock"]


@dataclass(frozen=True)
class Row:
    """A row of the view `segments`."""

    name: str
    key_low: float
    key_high: float
    creation_epoch: int
    sealed_epoch: int | None


ACTIVE = [
    Row("0.0", 0.0, 0.5, 0, None),
    Row("1.0", 0.5, 1.0, 0, 1),
    Row("2.1", 0.5, 0.75, 1, None),
    Row("3.1", 0.75, 1.0, 1, None),
]


def test_active_segments_tile_the_key_space() -> None:
    assert [s.name for s in active(ACTIVE, 0)] == ["0.0", "1.0"]
    assert [s.name for s in active(ACTIVE, 1)] == ["0.0", "2.1", "3.1"]
    with pytest.raises(ValueError, match="do not tile"):
        active(ACTIVE[1:], 0)


@dataclass(frozen=True)
class Decision:
    """A row of the view `scale_decisions`."""

    action: str


@pytest.mark.parametrize(
    ("actions", "ok"),
    [(["split", "merge"], True), (["split"], False), ([], False), (["merge", "split"], False)],
)
def test_segments_must_be_split_and_merged_again(actions: list[str], ok: bool) -> None:
    assert checks.scaled_by_load([Decision(action) for action in actions]).ok == ok


def test_the_demo_reads_no_settings_but_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It deletes what is truncated at once: it must not come near anybody's streams."""
    seen: list[Settings] = []

    def note(installation: Installation) -> bool:
        seen.append(settings.load(dict(os.environ) | installation.environment()))
        return True

    monkeypatch.setattr(demo, "run", note)
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    for name in ("DATABASE", "WAREHOUSE", "INPUT_ROOTS", "OUTPUT_ROOTS"):
        monkeypatch.setenv(f"WEIR_{name}", "/somebody/elses")
    monkeypatch.setenv("WEIR_STATE", str(tmp_path / "state"))
    assert demo.main() == 0
    state = str(tmp_path / "state")
    assert seen[0].state == tmp_path / "state"
    assert seen[0].database == "service=weir"
    assert all(
        path.startswith(state)
        for path in (seen[0].warehouse, *seen[0].input_roots, *seen[0].output_roots)
    )
    assert seen[0].grace_period == 0
