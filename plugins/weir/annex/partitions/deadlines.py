"""References for Airflow's deadlines: when the data of a run was there, as writers state, or when a
reader group had read it."""

import logging
from abc import ABC, abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Self

from airflow.sdk.definitions.deadline import BaseDeadlineReference
from sqlalchemy import Connection

from weir.annex.partitions.partitions import Partition
from weir.database.connection import Database
from weir.model.clock import EPOCH
from weir.queries.annex.partitions import deadlines as sql
from weir.settings import hasty, load

if TYPE_CHECKING:
    from airflow.models import DagRun
    from sqlalchemy.orm import Session

log = logging.getLogger("weir.airflow")


class DataDeadline(BaseDeadlineReference, ABC):
    """The base of both: a deadline counts from when the data of the run was there. If it is not
    there when the run is made, it counts from that moment."""

    required_kwargs = frozenset({"dag_id", "run_id"})

    def serialize_reference(self) -> dict[str, object]:
        return {**super().serialize_reference(), "name": self._name()}

    @classmethod
    def deserialize_reference(cls, reference_data: dict[str, object]) -> Self:
        return cls(reference_data["name"])

    @abstractmethod
    def _name(self) -> str: ...

    @abstractmethod
    def _asked(self, connection: Connection, until: int) -> datetime | None:
        """Return when the data up to an event time was there; None if it is not."""

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
            return database.transaction(lambda c: self._asked(c, micros))


@dataclass(eq=False)
class StreamCompleteDeadline(DataDeadline):
    """Count a deadline from when a stream was complete up to the end of the run's hour, day or
    interval, as its writers state."""

    stream: str = ""

    def _name(self) -> str:
        return self.stream

    def _asked(self, connection: Connection, until: int) -> datetime | None:
        return sql.complete_at(connection, name=self.stream, until=until)


@dataclass(eq=False)
class GroupReadDeadline(DataDeadline):
    """Count a deadline from when a reader group had read everything up to the end of the run's
    hour, day or interval."""

    reader_group: str = ""

    def _name(self) -> str:
        return self.reader_group

    def _asked(self, connection: Connection, until: int) -> datetime | None:
        return sql.read_at(connection, name=self.reader_group, until=until)
