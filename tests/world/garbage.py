"""Sweeping, by an installation below whose output roots all lies that it has written."""

from typing import Any

from tests.world.streams import rows
from weir.database.connection import Database
from weir.retention import garbage
from weir.retention.garbage import Swept


def sweep(
    database: Database, warehouse: str, grace_period: float, *how: Any, **given: Any
) -> Swept:
    """Sweep as `weir.retention.garbage.sweep` does."""
    if "output_roots" not in given:
        roots = [one.root for one in rows(database, "SELECT DISTINCT root FROM garbage")]
        given["output_roots"] = [root for root in roots if root]
    return garbage.sweep(database, warehouse, grace_period, *how, **given)
