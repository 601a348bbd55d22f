"""Which folders of a Parquet output count."""

import json
from pathlib import Path

import pyarrow.parquet as pq

from weir.database.connection import Database
from weir.reader_groups.outputs.records import committed_outputs


def committed_folders(database: Database, group: str, output: str) -> list[str]:
    """Return the folders that count, below the output root, in the order of the commits."""
    rows = database.transaction(lambda c: committed_outputs(c, group, output))
    return [row.path for row in rows]


def committed_numbers(database: Database, root: str, group: str, output: str) -> list[int]:
    """Return the numbers `n` of a Parquet output in the folders that its manifest lists, too."""
    folders = committed_folders(database, group, output)
    manifest = json.loads(Path(root, output, f"group={group}/_manifest.json").read_text())
    assert manifest["folders"] == folders
    files = [file for folder in folders for file in Path(root, folder).glob("*.parquet")]
    return sorted(n for file in files for n in pq.ParquetFile(file).read()["n"].to_pylist())
