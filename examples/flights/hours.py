"""Three days of flights, replayed by hour into a stream whose segments follow the load.

An hour of the days takes `SECONDS` of the stream's time, so that a policy counts several flights a
second. Nobody waits for them: before each append the demo sets the recorded times of this stream
back, as if they had passed. All else is as it always is.
"""

import pyarrow as pa
from sqlalchemy import Connection, text

import weir
from weir.database.connection import Database
from weir.settings import Settings

HOURS = "nyc/hours"
SECONDS = 15
LAST_BUSY = 46  # the hour, from the first midnight on, after which the first scale is due
QUIET = 1800  # seconds without a flight, after which the last segments are merged
_SET_BACK = (
    # A digest is of the clock, too; without one, nobody compares it.
    "UPDATE weir_internal.time_index t SET clock = clock - :by, digest = NULL "
    "FROM weir_internal.stream s "
    "WHERE t.stream_id = s.stream_id AND s.stream_name = :stream",
    "UPDATE weir_internal.epoch e SET created_at = e.created_at - :by FROM weir_internal.stream s "
    "WHERE e.stream_id = s.stream_id AND s.stream_name = :stream",
    "UPDATE weir_internal.segment SET sealed_clock = sealed_clock - :by "
    "WHERE stream_name = :stream",
    "UPDATE weir_internal.stream SET last_clock = last_clock - :by WHERE stream_name = :stream",
)


class Replay:
    """The replay, as far as it has come."""

    def __init__(self, database: Database, settings: Settings, hours: list[pa.Table]) -> None:
        """`database`, `settings`: with the login of jobs. `hours`: the flights of each hour."""
        self._database = database
        self._settings = settings
        self._hours = hours
        self._next = 0

    def until(self, hour: int) -> str:
        """Append the flights of the hours up to `hour`; return in words what was appended."""
        events = commits = 0
        with weir.open(settings=self._settings) as store:
            for number in range(self._next, min(hour, len(self._hours))):
                self.pass_time(SECONDS)
                flights = self._hours[number]
                if flights.num_rows:
                    store.append(HOURS, flights, writer_id="demo", batch_id=f"hour {number}")
                    events, commits = events + flights.num_rows, commits + 1
        self._next = hour
        return f"{events:,} flights in {commits} hours with flights"

    def pass_time(self, seconds: int) -> None:
        """Set everything recorded of the stream back by so many seconds."""

        def work(connection: Connection) -> None:
            for statement in _SET_BACK:
                connection.execute(text(statement), {"by": seconds * 1_000_000, "stream": HOURS})

        self._database.transaction(work)
