"""What a data source of the format `weir` is asked for: a stream, its columns, how to read them."""

import os
from collections.abc import Callable, Mapping, MutableMapping
from difflib import get_close_matches
from typing import TypeVar

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import LongType, StructField, StructType
from sqlalchemy import Connection

from weir.arrow.event_time import event_span
from weir.arrow.read import unknown_column
from weir.controller.locks import StreamRow, read_stream
from weir.controller.streams import schema_by_id
from weir.controller.times import parse_span
from weir.database.connection import Database
from weir.errors import InvalidInput, check_choice
from weir.model.group_configuration import ON_GAP
from weir.model.names import StreamName, stream_name
from weir.model.schema import PLACES, Field, without_metadata
from weir.settings import Settings, load
from weir.spark.failures.workers import says_why
from weir.spark.reads.format_options import Group, Limits, read_group

T = TypeVar("T")
# Options that a person gives; Spark and its callers add others.
_OPTIONS = ("start", "end", "since", "until", "eventTimeSince", "eventTimeUntil", "onGap",
            "readerGroup", "columns", "config", "stream",
            "maxEventsPerTrigger", "maxBytesPerTrigger", "maxFilesPerTrigger", "writerId",
            "batchId")  # fmt: skip


def _check_names(options: Mapping[str, str]) -> None:
    """Refuse an option that is nearly the name of one: without it, a query would read otherwise."""
    known = {name.lower(): name for name in _OPTIONS}
    for name in options:
        if name.lower() in known:
            continue
        if near := get_close_matches(name.lower(), known, 1, 0.8):
            raise InvalidInput(
                "argument_invalid",
                f"the format weir has no option {name!r}; write {known[near[0]]}.",
            )


class StreamSource(DataSource):
    """A data source of one stream, as its options describe it."""

    @says_why
    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._sent = False
        _check_names(options)
        self._settings: Settings | None = None
        self.limits = Limits.of(options)
        self.on_gap: str = options.get("onGap", "fail")
        check_choice("onGap", self.on_gap, ON_GAP)
        self.span = parse_span(options.get("since"), options.get("until"))
        self.span.check_alone(options.get("start"), options.get("end"))
        self.events = event_span(options.get("eventTimeSince"), options.get("eventTimeUntil"))
        path = options.get("path") or options.get("stream") or ""
        self.group: Group | None = None
        if "readerGroup" in options:
            for name in _OPTIONS[:7]:
                if name in options:
                    raise InvalidInput(
                        "argument_invalid",
                        f"{name} is given with readerGroup; leave {name} out, because the reader "
                        "group knows where it begins and ends, and what it does at a gap.",
                    )
            self.group = self.ask(lambda c: read_group(c, options["readerGroup"], path))
            path = self.group.stream
        self.stream: StreamName = stream_name(path)
        # Once, as Spark sends this object on: a query keeps the columns that it began with.
        row, self.fields = self.ask(self._columns)
        self.match = self.events.matching(row, self.fields) if self.events else None

    def _columns(self, connection: Connection) -> tuple[StreamRow, list[Field]]:
        row = read_stream(connection, self.stream)
        return row, schema_by_id(connection, row.stream_id)

    def __getstate__(self) -> dict[str, object]:
        """Leave out the settings, which have a password: this also goes to Spark's workers. And
        Spark makes a source to plan a micro-batch, and sends one to a process that commits it."""
        return {**self.__dict__, "_settings": None, "_sent": True}

    @property
    def settings(self) -> Settings:
        """The settings of the installation, of which only the driver's processes know all."""
        if self._settings is None:
            config = self.options.get("config")
            self._settings = load({**os.environ, "WEIR_CONFIG": config} if config else None)
        return self._settings

    @classmethod
    def name(cls) -> str:
        return "weir"

    def schema(self) -> StructType:
        struct = StructType.fromJson({"type": "struct", "fields": without_metadata(self.fields)})
        fields = [*struct.fields, *(StructField(name, LongType()) for name in PLACES)]
        if not self.options.get("columns"):
            return StructType(fields)
        known = {field.name: field for field in fields}
        names = [name.strip() for name in self.options["columns"].split(",")]
        if unknown := [name for name in names if name not in known]:
            raise self._unknown(unknown[0])
        return StructType([known[name] for name in names])

    def columns(self, schema: StructType) -> list[Field]:
        """Return the columns of a query's schema, with their names in files and their defaults,
        which Spark's schema does not have. Raises InvalidInput for one that the stream lacks."""
        known = {field["name"]: field for field in self.fields}
        found = list[Field]()
        for field in schema.jsonValue()["fields"]:
            name = field["name"]
            if name in known:
                found.append({**known[name], "type": field["type"]})
            elif name not in PLACES:
                raise self._unknown(name)
        return found

    def _unknown(self, name: str) -> InvalidInput:
        return unknown_column(self.stream, name, [field["name"] for field in self.fields])

    def ask(self, question: Callable[[Connection], T]) -> T:
        """Return what a question to Postgres answers, all of it at one moment."""
        with Database.of(self.settings) as database:
            return database.snapshot(question)
