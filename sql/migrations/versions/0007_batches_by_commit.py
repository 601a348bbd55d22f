"""Committed batches by time."""

from pathlib import Path

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text())
