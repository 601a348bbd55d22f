"""The tables of version 0.1.0.

Until that version is released they are those of the folders `schema`. Its release freezes them
(`python -m tests.release --freeze`): the file beside this one is then what a new database begins
with.
"""

from pathlib import Path

from alembic import op

from weir.database.definitions import files

revision = "0.1.0"
down_revision = None

_FROZEN = Path(__file__).with_suffix(".sql")
_SQL = Path(__file__).parents[2]
# As weir_internal.incarnation() has it, which is made after the tables.
_INSTALLATION = """
INSERT INTO weir_internal.installation (incarnation)
SELECT concat_ws(
    '/', s.system_identifier, greatest(c.timeline_id, r.min_recovery_end_timeline), d.oid,
    'weir_internal.installation'::regclass::oid)
FROM pg_control_system() s, pg_control_checkpoint() c, pg_control_recovery() r, pg_database d
WHERE d.datname = current_database()
"""


def upgrade() -> None:
    connection = op.get_bind()
    for path in [_FROZEN] if _FROZEN.is_file() else files(_SQL, "schema"):
        connection.exec_driver_sql(path.read_text())
    connection.exec_driver_sql(_INSTALLATION)
