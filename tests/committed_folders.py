"""Which folders of a Parquet output count."""

from weir.database.connection import Database
from weir.reader_groups.outputs.records import committed_outputs


def committed_folders(database: Database, group: str, output: str) -> list[str]:
    """Return the folders that count, below the output root, in the order of the commits."""
    rows = database.transaction(lambda c: committed_outputs(c, group, output))
    return [row.path for row in rows]
