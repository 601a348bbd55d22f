"""The tables of version 0.1.0: made in a new database, or out of the last layout before it."""

from pathlib import Path

from alembic import op

revision = "0.1.0"
down_revision = None


def upgrade() -> None:
    connection = op.get_bind()
    before = connection.exec_driver_sql("SELECT to_regclass('weir.alembic_version')").scalar()
    name = "0.1.0_baseline.sql" if before is None else "0.1.0_from_0015.sql"
    connection.exec_driver_sql(Path(__file__).with_name(name).read_text())
