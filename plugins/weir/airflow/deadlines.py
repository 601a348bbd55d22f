"""References for Airflow's deadlines: when the data of a run was there, as writers state, or when a
reader group had read it."""

import logging
from abc import ABC
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from airflow.sdk.definitions.deadline import BaseDeadlineReference
from sqlalchemy import text

from weir.airflow.partitions import Partition
from weir.database.connection import Database
from weir.model.clock import EPOCH
from weir.settings import hasty, load

if TYPE_CHECKING:
    from airflow.models import DagRun
    from sqlalchemy.orm import Session

log = logging.getLogger("weir.airflow")

# The first commit that has made the stream complete to that, or else the last statement.
_COMPLETE = text(
    """SELECT CASE WHEN s.complete_until >= :until THEN coalesce(
        (SELECT min(clock_time(t.clock)) FROM transaction t
         WHERE t.stream_name = s.stream_name AND t.complete_until >= :until
           AND t.clock > coalesce((
               SELECT o.clock FROM transaction o WHERE o.stream_name = s.stream_name
               AND o.state = 'committed' AND coalesce(o.complete_until, :until - 1) < :until
               ORDER BY clock_time(o.clock) DESC LIMIT 1), 0)),
        (SELECT max(w.stated_at) FROM stream_writer w WHERE w.stream_id = s.stream_id)) END
    FROM stream s WHERE s.stream_name = :name AND s.state <> 'deleted'"""
)
_READ = text(
    """SELECT min(b.committed_at) FROM reader_batch b
    WHERE b.group_name = :name AND b.state = 'committed' AND b.complete_until >= :until"""
)


class DataDeadline(BaseDeadlineReference, ABC):
    """The base of both: a deadline counts from when the data of the run was there. If it is not
    there when the run is made, it counts from that moment."""

    required_kwargs = frozenset({"dag_id", "run_id"})
    _statement = _COMPLETE

    def serialize_reference(self) -> dict[str, object]:
        return {**super().serialize_reference(), "name": self._name()}

    @classmethod
    def deserialize_reference(cls, reference_data: dict[str, object]) -> Self:
        return cls(reference_data["name"])

    def _name(self) -> str:
        raise NotImplementedError

    def _evaluate_with(self, *, session: "Session", dag_id: str, run_id: str) -> datetime:
        from airflow.models import DagRun

        run = session.query(DagRun).filter_by(dag_id=dag_id, run_id=run_id).one()
        now = datetime.now(UTC)
        try:
            until = self._until(run)
            return self._there_at(until) or now
        except Exception as error:  # the scheduler makes the run, whatever becomes of this
            log.warning("the deadline of run %s of %s counts from now: %s", run_id, dag_id, error)
            return now

    def _until(self, run: "DagRun") -> datetime:
        """Return up to which event time a run needs data: the end of its partition or interval."""
        if run.partition_key:
            return Partition.of(run.partition_key).until
        at: datetime = run.data_interval_end or run.logical_date or run.run_after
        return at

    def _there_at(self, until: datetime) -> datetime | None:
        micros = (until - EPOCH) // timedelta(microseconds=1)
        with Database.of(hasty(load())) as database:
            at: datetime | None = database.transaction(
                lambda c: c.execute(
                    self._statement, {"name": self._name(), "until": micros}
                ).scalar()
            )
        return at


@dataclass(eq=False)
class StreamCompleteDeadline(DataDeadline):
    """Count a deadline from when a stream was complete up to the end of the run's hour, day or
    interval, as its writers state."""

    stream: str = ""

    def _name(self) -> str:
        return self.stream


@dataclass(eq=False)
class GroupReadDeadline(DataDeadline):
    """Count a deadline from when a reader group had read everything up to the end of the run's
    hour, day or interval."""

    reader_group: str = ""
    _statement = _READ

    def _name(self) -> str:
        return self.reader_group
