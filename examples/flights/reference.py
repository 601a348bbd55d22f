"""The demo's reference data: aircraft, airlines and the hourly weather, kept as adjunct stores.

A program appends each table of the package to a stream of changes. The consumer joins every flight
with the aircraft and the airline, and with the newest weather report of its airport before it left.
"""

import shutil
from pathlib import Path

import pandas as pd
from pyarrow import csv
from sqlalchemy import text

import weir
from flights.checks import Check
from weir.database.connection import Database
from weir.settings import Settings

TABLES = PLANES, AIRLINES, WEATHER = "nyc/planes", "nyc/airlines", "nyc/weather"
DETAILS = ["seats", "airline", "temp"]


def write_tables(data: Path, root: Path) -> dict[str, str]:
    """Copy the tables of the package below `root`. Return their paths there, by stream."""
    (root / "reference").mkdir()
    paths = {stream: f"reference/{stream.partition('/')[2]}.csv" for stream in TABLES}
    for path in paths.values():
        shutil.copyfile(data / Path(path).name, root / path)
    return paths


def append(path: Path, stream: str, settings: Settings) -> str:
    """Append a table to its stream, as any program does; return in words what was appended."""
    table = csv.read_csv(path, convert_options=csv.ConvertOptions(null_values=["NA"]))
    with weir.open(settings=settings) as store:
        done = store.append(stream, table, writer_id="demo", batch_id=path.name)
    return f"{done.events:,} events"


def files(database: Database) -> list[str]:
    """Return the files of all versions and of their history, below the warehouse."""
    return list(
        database.transaction(lambda c: c.execute(text("SELECT path FROM adjunct_file")).scalars())
    )


def expected(flights: pd.DataFrame, tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the details of each flight, by its source row, computed without Weir."""
    planes, airlines, weather = (tables[name] for name in (PLANES, AIRLINES, WEATHER))
    left = flights[["source_row", "tailnum", "carrier", "origin", "time_hour"]].copy()
    left["time_hour"] = pd.to_datetime(left["time_hour"], utc=True).astype("datetime64[us, UTC]")
    hours = weather[["origin", "temp", "time_hour"]].copy()
    hours["time_hour"] = pd.to_datetime(hours["time_hour"], utc=True).astype("datetime64[us, UTC]")
    hours = hours.drop_duplicates(["origin", "time_hour"], keep="last").sort_values("time_hour")
    left = pd.merge_asof(left.sort_values("time_hour"), hours, on="time_hour", by="origin")
    left["seats"] = left["tailnum"].map(planes.set_index("tailnum")["seats"])
    left["airline"] = left["carrier"].map(airlines.set_index("carrier")["name"])
    return left.set_index("source_row")[DETAILS].sort_index()


def same_details(
    flights: pd.DataFrame, tables: dict[str, pd.DataFrame], details: pd.DataFrame
) -> list[Check]:
    """Check that each flight was joined with its aircraft, its airline, and the weather then."""
    wanted = expected(flights, tables)
    found = details.set_index("source_row")[DETAILS].sort_index()
    result = []
    for column, what in zip(DETAILS, ("its aircraft", "its airline", "the weather at its hour"),
                            strict=True):  # fmt: skip
        same = wanted.index.equals(found.index)
        differ = 0
        if same:
            a, b = wanted[column], found[column]
            differ = int((~((a == b) | (a.isna() & b.isna()))).sum())
        ok = same and differ == 0 and bool(wanted[column].notna().any())
        numbers = f"{int(found[column].notna().sum()):,} of {len(found):,} flights have one"
        numbers += f"; {differ:,} differ" if differ else "" if same else "; not each flight once"
        result.append(Check(f"each flight was joined with {what}", ok, numbers))
    return result
