"""A past of hours, for tests of what is known of it."""

from tests.world.streams import run
from weir.database.connection import Database

_TIMES = {
    "placement": ("placed_at",),
    "stream": ("created_at",),
    "reader_group": ("created_at", "moved_at"),
    "truncation": ("truncated_at",),
    "stream_cut": ("recorded_at",),
    "retention_queue": ("due_at",),
    "stream_history": ("slot", "recorded_at"),
    "group_history": ("slot", "recorded_at"),
    "owner_history": ("slot",),
}
_CLOCKS = {"stream": "last_clock", "transaction": "clock", "time_index": "clock"}
_FAR = 10**9  # seconds: first to there, as rows must not meet those that are still to move


def pass_hours(database: Database, hours: int) -> None:
    """Set back all that has happened by so many hours."""
    for by in (-_FAR - hours * 3600, _FAR):
        for table, columns in _TIMES.items():
            sets = ", ".join(f"{one} = {one} + :by * interval '1 second'" for one in columns)
            run(database, f"UPDATE {table} SET {sets}", by=by)
    for table, column in _CLOCKS.items():
        run(database, f"UPDATE {table} SET {column} = {column} - :by", by=hours * 3600 * 10**6)
