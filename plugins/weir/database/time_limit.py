"""How long a statement may take where somebody waits for its answer."""

from sqlalchemy import Connection, text

CANCELLED = "57014"  # the SQLSTATE of a statement that took longer

_LIMIT = text("SELECT set_config('statement_timeout', :most, true)")


def limit_statements(connection: Connection, seconds: float) -> None:
    """Let each further statement of a transaction take so long at most."""
    connection.execute(_LIMIT, {"most": f"{seconds}s"})
