"""The tables of version 0.1.0: made in a new database, or out of the last layout before it."""

from pathlib import Path

from alembic import op

from weir.errors import Conflict

revision = "0.1.0"
down_revision = None

_LAST_BEFORE = "0015"


def upgrade() -> None:
    connection = op.get_bind()
    name = "0.1.0_baseline.sql"
    if connection.exec_driver_sql("SELECT to_regclass('weir.alembic_version')").scalar():
        [before] = connection.exec_driver_sql("SELECT version_num FROM weir.alembic_version").one()
        if before != _LAST_BEFORE:
            raise Conflict(
                "layout_too_old",
                f"the database has layout {before} from before version 0.1.0, and only "
                f"{_LAST_BEFORE} can be upgraded: create a new database, or bring this one to "
                f"{_LAST_BEFORE} with the Weir that made it.",
            )
        name = f"0.1.0_from_{_LAST_BEFORE}.sql"
    connection.exec_driver_sql(Path(__file__).with_name(name).read_text())
