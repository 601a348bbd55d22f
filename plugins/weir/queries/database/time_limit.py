"""How long statements may take. Made by `make queries` from sql/queries/database/time_limit.sql."""

from sqlalchemy import Connection, text

LIMIT = text("""SELECT set_config('statement_timeout', :most, true)""")


def limit(connection: Connection, *, most: str) -> None:
    """Let each further statement of a transaction take so long at most."""
    result = connection.execute(LIMIT, {"most": most})
    result.close()
