"""Limits of retention, what is to be looked at, subscribers that release by hand or time out."""

from pathlib import Path

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.get_bind().exec_driver_sql(Path(__file__).with_suffix(".sql").read_text())
