"""How long a statement may take where somebody waits for its answer."""

from sqlalchemy import Connection

from weir.queries.database import time_limit as sql

CANCELLED = "57014"  # the SQLSTATE of a statement that took longer


def limit_statements(connection: Connection, seconds: float) -> None:
    """Let each further statement of a transaction take so long at most."""
    sql.limit(connection, most=f"{seconds}s")
