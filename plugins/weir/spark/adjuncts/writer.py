"""Write a version of an adjunct store: copy the last one, and replace the keys that changed.

A version is copied on write: it has plain files, and each key is in one of them. A file is sorted
by the hash of its keys. Files that no change touches are shared with the version before; the others
are rewritten in the order that they have, without a shuffle. What has changed is in files of its
own, until there are so many that everything is sorted anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from weir.adjunct.builds import CONVERTED, Build
from weir.adjunct.publication import Built
from weir.adjunct.stores import routing_key_of
from weir.adjunct.versions import AdjunctVersion
from weir.consumers.store_parts import KEY, Parts, parts_of
from weir.controller.read_plan import FileSlice, Slices, plan
from weir.errors import BadRows, Conflict, InvalidInput, InvariantViolation
from weir.front_ends import do
from weir.installation.opened import Installation
from weir.model.key_space import STEPS
from weir.model.schema import SEQ, Field, new_field
from weir.model.segment import segment_name
from weir.queries.adjunct.versions import AdjunctFile
from weir.spark.adjuncts.changes import (
    CLOCK,
    FAILED,
    HASH,
    PLACE,
    SOURCE,
    VALUE,
    Changes,
    changes_of,
)  # fmt: skip
from weir.spark.adjuncts.files import (
    DELETED,
    HIDDEN,
    named,
    scan,
    struct_of,
    write_rows,
)
from weir.spark.adjuncts.rejected import quarantine
from weir.spark.base.progress import watched
from weir.spark.base.session import cores, moved, private_session
from weir.spark.reads.frames import frame_of

ROWS_PER_FILE = 250_000
MOST_BROADCAST_KEYS = 2_000_000  # with more changed keys, both sides are shuffled
_MOST_RANGES = 256  # of files that are compared with the changed keys one by one
_ROWS_PER_TASK = 200_000  # of a shuffle
MOST_SMALL_FILES = 16  # beyond twice as many files as the rows need, before all are sorted anew
_ADAPTIVE = "org.apache.spark.sql.execution.adaptive"
_SESSION = {
    "spark.sql.execution.arrow.useLargeVarTypes": "false",  # of batches that tasks get
    "spark.sql.unionOutputPartitioning": "false",  # files of either side stay files of their own
    # Else a plan that turns out to write no rows forgets what it has counted (Observation).
    "spark.sql.adaptive.optimizer.excludedRules": f"{_ADAPTIVE}.AQEPropagateEmptyRelation",
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
}
# Each file is one task, so that its rows keep their order.
_WHOLE_FILES = {
    "spark.sql.files.maxPartitionBytes": str(1 << 40),
    "spark.sql.files.openCostInBytes": str(1 << 40),
}


@dataclass
class _Counts:
    """What was counted in the changes that a build reads."""

    events: int = 0
    null_keys: int = 0
    failed: int = 0
    upserts: int = 0
    deletes: int = 0
    touched: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, events: int, found: Mapping[str, int | None]) -> "_Counts":
        """Return what `_outcomes` has counted; a sum of no rows is null."""
        null_keys, failed, upserts, deletes = (
            found[name] or 0 for name in ("null_keys", "failed", "upserts", "deletes")
        )
        return cls(events, null_keys, failed, upserts, deletes)

    @property
    def keys(self) -> int:
        """How many keys the events upsert or delete."""
        return self.upserts + self.deletes


class Writer:
    """Writes the files of one build, in a private session."""

    def __init__(self, app: Installation, build: Build) -> None:
        self._app, self._build, self._store = app, build, build.store
        self._warehouse = app.settings.warehouse
        self._spark: SparkSession = private_session(app.spark, _SESSION)
        self._whole = private_session(self._spark, _WHOLE_FILES)
        self._converted: tuple[Changes, Observation] | None = None  # rows of the base, and a count
        self._kept: list[DataFrame] = []

    @contextmanager
    def writing(self) -> Iterator["Writer"]:
        """Let Spark forget at the end of the block what it has kept for this build."""
        try:
            yield self
        finally:
            for frame in self._kept:
                frame.unpersist()

    def write(self) -> Built:
        """Write the files of the version, and of its history; return them."""
        build = self._build
        slices, fields = self._app.database.snapshot(
            lambda c: plan(c, self._store.stream, build.from_cut, build.cut)
        )
        events = sum(s.rows for s in slices)
        if not fields:  # nobody knows yet of which type the keys will be
            key: Field = {**new_field(KEY, "string"), "nullable": False}
            return Built([key], (), (), self._no_history(), 0, 0, 0, 0, 0)
        tasks = max(cores(self._spark), events // _ROWS_PER_TASK)
        self._spark.conf.set("spark.sql.shuffle.partitions", str(tasks))
        changes = self._changes(slices, fields)
        if not slices and build.base is None:
            return self._built(changes, _Counts(), (), (), self._no_history())
        what = f"building version {build.version} of {self._store.name}"
        with watched(self._app.spark, what, self._app.say, (self._warehouse, build.folder)):
            if build.base is None:
                built = self._rebuilt(changes, events)
            else:
                built = self._continued(changes, events, build.base, fields)
            self._quarantine(built.failed_rows, changes)
        return built

    def _changes(self, slices: Sequence[FileSlice], fields: list[Field]) -> Changes:
        read = Slices(str(self._store.stream), self._store.stream_id, slices, fields)
        events = frame_of(self._spark, self._app.settings, read, order="none", rank=True)
        return changes_of(events, self._parts_of(fields), self._app.settings)

    def _parts_of(self, fields: list[Field]) -> Parts:
        """Return what the definition makes of events. Raises Conflict for one that is not
        understood any more."""
        store = self._store
        routing_key = self._app.database.transaction(lambda c: routing_key_of(c, store.stream_id))
        try:
            return parts_of(store.definition, fields, routing_key, store.name)
        except InvalidInput as error:
            raise Conflict(
                "adjunct_definition_invalid",
                f"adjunct store {store.name} is not built, because its definition makes nothing of "
                f"the events ({error.sentence.rstrip('.')}); "
                f"{do('update_adjunct_store', adjunct_store=store.name)}, with what it is to have "
                "in place of that: columns with transforms, or a function.",
            ) from error

    def _rebuilt(self, changes: Changes, events: int) -> Built:
        """Write what the keys are now, from all changes."""
        seen = Observation()
        delta = _latest(changes.frame, changes).observe(seen, *_outcomes())
        rows = _table(delta.where(F.col(KEY).isNotNull() & F.col(VALUE).isNotNull()))
        written = self._write(_bucketed(rows, self._files_for(events)), "table")
        counts = _Counts.of(events, seen.get)
        self._check(counts, changes)
        self._check_rows(written, counts.upserts)
        return self._built(changes, counts, written, (), self._history(changes))

    def _continued(
        self, changes: Changes, events: int, base: AdjunctVersion, fields: list[Field]
    ) -> Built:
        """Write the rows of the base whose keys have not changed, and what the others are now."""
        if self._store.configuration.history is not None and self._build.kind != CONVERTED:
            changes = replace(changes, frame=self._keep(changes.frame))
        delta = self._keep(_latest(changes.frame, changes))
        counts = self._count(delta, events, base)
        self._check(counts, changes)
        converted = self._build.kind == CONVERTED
        if not counts.keys and not converted:  # all of them were skipped
            return self._built(changes, counts, (), base.files, self._history(changes))
        old = [f for f in base.files if converted or f.path in counts.touched]
        kept = [f for f in base.files if f not in old]
        before = self._base_rows(base, old, changes, fields, converted)
        changed = delta.where(F.col(KEY).isNotNull())
        after = _table(changed.where(F.col(VALUE).isNotNull()))
        keys = changed.select(KEY)
        few = counts.keys <= MOST_BROADCAST_KEYS
        rest = before.join(F.broadcast(keys) if few else keys, KEY, "left_anti")
        size = sum(f.rows for f in base.files) + counts.upserts
        files, added = self._files_for(size), self._files_for(counts.upserts)
        if few and size > ROWS_PER_FILE and (
            len(base.files) + added <= 2 * files + MOST_SMALL_FILES
        ):  # fmt: skip
            written = self._write(rest.unionByName(_bucketed(after, added)), "table")
        else:  # small, or in too many pieces: in the order of all hashes
            if kept:
                more = self._base_rows(base, kept, changes, fields, converted)
                rest, kept = rest.unionByName(more), []
            written = self._write(_bucketed(rest.unionByName(after), files), "table")
        if self._converted is not None:
            counts.failed += self._converted[1].get["failed"]
            self._check(counts, changes, base.rows)
        history = None if converted else self._history(changes)
        return self._built(changes, counts, written, kept, history)

    def _base_rows(
        self,
        base: AdjunctVersion,
        files: Sequence[AdjunctFile],
        changes: Changes,
        fields: list[Field],
        converted: bool,
    ) -> DataFrame:
        """Return rows of the base, with the columns of the new version. Each file is one task, in
        the order of the file."""
        with_source = bool(self._store.definition.value)
        columns = struct_of(fields)
        hidden = HIDDEN
        if not converted:
            schema = struct_of(changes.fields, hidden)
            if with_source:
                schema = schema.add(SOURCE, columns)
            return self._scan(files, schema)
        if base.has_source:
            key = struct_of([base.fields[0]], hidden).add(SOURCE, columns)
            rows = self._scan(files, key).select(KEY, CLOCK, SEQ, *named(fields, SOURCE))
        else:
            rows = self._scan(files, struct_of([base.fields[0], *fields], hidden[1:]))
            rows = rows.select(KEY, CLOCK, SEQ, *named(fields))
        events = rows.withColumnRenamed(CLOCK, "_clock")
        again = changes_of(events, self._parts_of(fields), self._app.settings, known_keys=True)
        seen = Observation()
        self._converted = again, seen
        frame = again.frame.observe(seen, F.count_if(FAILED).alias("failed"))
        return _table(frame.where(F.col(KEY).isNotNull() & F.col(VALUE).isNotNull()))

    def _scan(self, files: Sequence[AdjunctFile], schema: StructType) -> DataFrame:
        rows = scan(self._whole, self._warehouse, files, schema)
        return moved(rows, self._spark)

    def _keep(self, frame: DataFrame) -> DataFrame:
        """Let Spark keep rows that are used several times, until the version is written."""
        self._kept.append(frame.persist(StorageLevel.MEMORY_AND_DISK))
        return self._kept[-1]

    def _count(self, delta: DataFrame, events: int, base: AdjunctVersion) -> _Counts:
        """Count the changes, and find the files of the base that may have their keys."""
        touching = [
            F.bool_or(F.col(HASH).between(f.low, f.high)).alias(f"f{i}")
            for i, f in enumerate(base.files)
        ]
        every = len(base.files) > _MOST_RANGES  # so many conditions cost more than they save
        row = delta.agg(*_outcomes(), *([] if every else touching)).head()
        assert row is not None
        found = row.asDict()
        counts = _Counts.of(events, found)
        counts.touched = {f.path for i, f in enumerate(base.files) if found.get(f"f{i}", every)}
        return counts

    def _check(self, counts: _Counts, changes: Changes, converted: int = 0) -> None:
        """Check what the store says about events without a key, and about those that fail; of
        them, some are rows of the base that were converted."""
        name, settings = self._store.name, self._store.configuration
        fails = (
            f"the key, the value or the delete condition of adjunct store {name} fails "
            f"for {counts.failed:,} of {counts.events + converted:,} events"
        )
        if counts.failed and settings.on_error == "fail":
            raise BadRows(
                "bad_rows",
                f"{fails}{_first(changes, F.col(FAILED))}; correct it, or to leave them "
                f"out, {do('update_adjunct_store', adjunct_store=name, on_error='quarantine')}.",
            )
        most = self._app.settings.rejected_events
        if counts.failed > most:  # the definition is wrong, not the events
            raise BadRows(
                "bad_rows",
                f"{fails}{_first(changes, F.col(FAILED))}, and a build leaves out at most "
                f"{most:,}; correct it, or raise rejected_events in weir.toml.",
            )
        if counts.null_keys and settings.null_key == "fail":
            raise BadRows(
                "bad_rows",
                f"{counts.null_keys:,} of {counts.events:,} events have no key for adjunct store "
                f"{name}{_first(changes, ~F.col(FAILED))}; correct its key, or to leave "
                f"them out, {do('update_adjunct_store', adjunct_store=name, null_key='skip')}.",
            )

    def _quarantine(self, failed: int, changes: Changes) -> None:
        """Quarantine what fails, if the store says so: at last, when no check stops the version."""
        if self._store.configuration.on_error != "quarantine":
            return
        if self._converted is not None:
            again, seen = self._converted
            if of_base := seen.get["failed"]:
                quarantine(self._app, self._build, again)
            failed -= of_base
        if failed:
            quarantine(self._app, self._build, changes)

    def _no_history(self) -> Sequence[AdjunctFile] | None:
        return None if self._store.configuration.history is None else ()

    def _history(self, changes: Changes) -> Sequence[AdjunctFile] | None:
        """Write all changes, if the store keeps them."""
        if self._store.configuration.history is None:
            return None
        rows = changes.frame.where(F.col(KEY).isNotNull()).select(
            KEY, HASH, CLOCK, SEQ, F.col(VALUE).isNull().alias(DELETED), f"{VALUE}.*"
        )
        return self._write(rows, "history")

    def _files_for(self, rows: int) -> int:
        return max(1, -(-rows // ROWS_PER_FILE))

    def _write(self, rows: DataFrame, kind: str) -> list[AdjunctFile]:
        return write_rows(rows, self._warehouse, f"{self._build.folder}{kind}/")

    def _check_rows(self, files: Sequence[AdjunctFile], rows: int) -> None:
        if (found := sum(file.rows for file in files)) != rows:
            raise InvariantViolation(
                "invariant_violated",
                f"Spark wrote {rows} rows for adjunct store {self._store.name}, but the files "
                f"below {self._build.folder} have {found}, so nothing was published; try again.",
            )

    def _built(
        self,
        changes: Changes,
        counts: _Counts,
        files: Sequence[AdjunctFile],
        kept: Sequence[AdjunctFile],
        history: Sequence[AdjunctFile] | None,
    ) -> Built:
        return Built(
            changes.fields, files, kept, history, counts.events, counts.upserts, counts.deletes,
            counts.null_keys, counts.failed,
        )  # fmt: skip


def _outcomes() -> list[Column]:
    """Return what to count of the last changes of keys."""
    known, lives = F.col(KEY).isNotNull(), F.col(VALUE).isNotNull()
    return [
        F.sum("null_keys").alias("null_keys"),
        F.sum("failed").alias("failed"),
        F.count_if(known & lives).alias("upserts"),
        F.count_if(known & ~lives).alias("deletes"),
    ]


def _latest(frame: DataFrame, changes: Changes) -> DataFrame:
    """Return the last change of each key; in the row without a key, how many events have no key,
    and for how many something fails.

    The value is in a struct: without one, a deletion would bring back the value before it.
    """
    last = F.struct(HASH, CLOCK, SEQ, *changes.state)
    found = frame.groupBy(KEY).agg(
        F.max_by(last, F.struct(CLOCK, SEQ)).alias("_weir_last"),
        F.count_if(F.col(KEY).isNull() & ~F.col(FAILED)).alias("null_keys"),
        F.count_if(FAILED).alias("failed"),
    )
    return found.select(KEY, "_weir_last.*", "null_keys", "failed")


def _first(changes: Changes, which: Column) -> str:
    """Return where the first event without a key is, of some, as a part of a sentence."""
    rows = changes.frame.where(F.col(KEY).isNull() & which)
    row = rows.agg(F.min(PLACE).alias("first")).head()
    if row is None or row.first is None:
        return ""
    segment, offset = row.first
    return f" (the first is in segment {segment_name(segment)} at offset {offset})"


def _table(rows: DataFrame) -> DataFrame:
    """Return the columns of the table's files."""
    source = [SOURCE] if SOURCE in rows.columns else []
    return rows.select(KEY, HASH, CLOCK, SEQ, f"{VALUE}.*", *source)


def _bucketed(rows: DataFrame, files: int) -> DataFrame:
    """Return the rows in so many tasks, each with an equal range of the hashes of keys and sorted
    by them."""
    width = STEPS // files + 1
    bucket = F.expr(f"int({HASH} div {width}L)")
    return rows.repartitionById(files, bucket).sortWithinPartitions(HASH)
