"""Made by `make docs` from the forms of the jobs; methods.py makes the methods."""

from typing import Any, Literal, NotRequired, TypedDict

from weir.adjunct.builds import Built
from weir.adjunct.expiry import Expired
from weir.adjunct.stores import StoreDefined, StoreDeleted, StoreUpdated
from weir.annex.audit.run import AuditReport
from weir.annex.declarations.differences import Changed
from weir.annex.erasure.everywhere import EraseReport
from weir.annex.publication.run import Published
from weir.annex.recovery.recover import RecoverReport
from weir.annex.verification.verify import VerifyReport
from weir.compaction.pack import Packed
from weir.compaction.records import Compacted
from weir.consumers.consumer import Consumed
from weir.controller.expiry import Aborted
from weir.controller.scale import Scaled
from weir.controller.seal import Sealed
from weir.controller.streams import StreamCreated
from weir.controller.transactions import CommittedReport
from weir.controller.update import StreamUpdated
from weir.programs.actions import Acting
from weir.reader_groups.checkpoints.records import Checkpointed
from weir.reader_groups.groups.lifecycle import GroupCreated, GroupDeleted
from weir.reader_groups.groups.readers import ReaderGone
from weir.reader_groups.groups.reset import GroupReset
from weir.reader_groups.groups.update import GroupUpdated
from weir.retention.capture import Captured
from weir.retention.delete_stream import StreamDeleted
from weir.retention.garbage import Swept
from weir.retention.release import Released
from weir.retention.run import Decided
from weir.scaling.run import ByLoad
from weir.warehouse.room import Room

class BackTestReport(TypedDict):
    """What a policy would have done: the first of its `scales`, how many others there are, and what
    was recorded in the same time. `with the policy` has the sums, as `recorded` has them."""

    stream: str
    policy: dict[str, object]
    since: str
    until: str
    positions: str
    recorded: dict[str, object]
    hot_keys: list[dict[str, object]]
    scales: list[dict[str, object]]
    scales_not_listed: int

class TruncateReport(TypedDict):
    """What was truncated, or would be."""

    stream: str
    head: dict[str, int | str]
    events: int
    bytes: int
    files: int
    lost: dict[str, int]
    lost_to_others: dict[str, int]
    already: str
    dry_run: bool

class ApplyReport(TypedDict):
    """What differed from the declarations, and how many things did not."""

    changes: list[Changed]
    unchanged: int

class AdjunctReport(TypedDict):
    """Which versions of stores were built, and which expired."""

    built: list[Built]
    expired: list[Expired]

class CheckpointsReport(TypedDict):
    """What was recorded of reader groups, which readers had gone, and how far the groups are."""

    expired_readers: list[dict[str, str]]
    checkpoints: list[Checkpointed]
    lag: list[dict[str, object]]

class CompactReport(TypedDict):
    """What was done to the files of streams."""

    compacted: list[Compacted]

class PublishReport(TypedDict):
    """What was done to the tables of streams."""

    published: list[Published]

class RetentionReport(TypedDict):
    """What retention did. `deleted`: not of a dry run."""

    decisions: list[Decided]
    alerts: list[str]
    deleted: Swept | None

class ScaleReport(TypedDict):
    """What was decided about streams."""

    decisions: list[ByLoad]

class StreamCutsReport(TypedDict):
    """Which tails were recorded, and what of the files before them is proven."""

    captured: list[Captured]
    proven: NotRequired[dict[str, object]]

class UpkeepReport(TypedDict):
    """What each step did; those of annexes are in it under their names, too."""

    aborted: list[Aborted]
    deleted: Swept
    pruned: list[dict[str, object]]
    dropped: object
    pruned_checkpoints: int
    pruned_batches: int
    pruned_versions: int
    pruned_runs: int
    pruned_compactions: int
    forgotten: object
    disks: list[Room]
    pruned_history: int
    packed: list[Packed]
    compacted: list[Compacted]

class Actions(Acting):
    def back_test(
        self,
        stream: str,
        *,
        target_rate: int = 0,
        scaling: Literal["event_rate", "byte_rate"] = "event_rate",
        scale_factor: int = 2,
        last: str = "",
        min_segments: int = 1,
        max_segments: str = "",
        scale_cooldown: str = "10 min",
        read_files: bool = True,
    ) -> BackTestReport:
        """Replay a scaling policy over the recorded history of a stream, and change nothing."""
    def create_stream(
        self,
        stream: str,
        routing_key: str,
        *,
        segments: int = 1,
        event_time: str = "",
        event_time_ahead: str = "none",
        event_time_back: str = "31 d",
        on_missing_key: Literal["automatic", "fail", "quarantine", "spread"] = "automatic",
        on_bad_rows: Literal["fail", "quarantine"] = "fail",
        on_new_column: Literal["automatic", "refuse", "add"] = "automatic",
        refuse_erased: bool = False,
        retention: Literal["keep", "age", "size", "consumed"] = "keep",
        retain_min_age: str = "",
        retain_max_age: str = "",
        retain_min_bytes: str = "",
        retain_max_bytes: str = "",
        cuts_every: str = "",
        scaling: Literal["fixed", "event_rate", "byte_rate"] = "fixed",
        target_rate: int = 0,
        scale_factor: int = 0,
        min_segments: int = 1,
        max_segments: str = "",
        scale_cooldown: str = "10 min",
        publish: Literal["none", "iceberg"] = "none",
        owner: str = "",
        tags: list[str] = ...,
        schema: str = "",
    ) -> StreamCreated:
        """Create a stream."""
    def define_adjunct_store(
        self,
        adjunct_store: str,
        stream: str,
        *,
        key: str = "",
        value: str = "",
        delete_when: str = "",
        key_type: str = "",
        value_columns: str = "",
        layout: Literal["auto", "broadcast", "partitioned"] = "auto",
        bootstrap: str = "batch",
        missing: Literal["wait", "empty", "fail"] = "wait",
        patience: int = 3600,
        null_key: Literal["skip", "fail"] = "skip",
        on_error: Literal["fail", "skip", "quarantine"] = "fail",
        on_gap: Literal["fail", "rebuild"] = "fail",
        keep_versions: str = "1 d",
        history: str = "",
        time_out: str = "",
    ) -> StoreDefined:
        """Define an adjunct store: a keyed table that is kept from a stream."""
    def delete_adjunct_store(self, adjunct_store: str, *, dry_run: bool = False) -> StoreDeleted:
        """Delete an adjunct store with its versions; its stream is kept."""
    def delete_stream(
        self, stream: str, *, unread_too: bool = False, dry_run: bool = False
    ) -> StreamDeleted:
        """Delete a sealed stream with everything that it owns."""
    def erase(
        self,
        stream: str,
        reason: str,
        *,
        keys: list[str] = ...,
        dry_run: bool = True,
        condition: str = "",
        subject: str = "",
        requested_by: str = "",
        everything: bool = False,
    ) -> EraseReport:
        """Erase events from a stream and from the streams that were made of it, with a certificate."""
    def scale_stream(
        self, stream: str, segments: list[str], *, parts: int = 2, reason: str = ""
    ) -> Scaled:
        """Seal active segments and create new ones over the same key ranges."""
    def seal_stream(self, stream: str) -> Sealed:
        """Make a stream read-only for ever."""
    def truncate_stream(
        self, stream: str, cut: str, *, reader_group: str = "", dry_run: bool = True
    ) -> TruncateReport:
        """Truncate all events of a stream before a starting point."""
    def update_adjunct_store(
        self,
        adjunct_store: str,
        *,
        key: str = "",
        value: str = "",
        delete_when: str = "",
        key_type: str = "",
        value_columns: str = "",
        layout: Literal["unchanged", "auto", "broadcast", "partitioned"] = "unchanged",
        bootstrap: str = "",
        missing: Literal["unchanged", "wait", "empty", "fail"] = "unchanged",
        patience: int = 0,
        null_key: Literal["unchanged", "skip", "fail"] = "unchanged",
        on_error: Literal["unchanged", "fail", "skip", "quarantine"] = "unchanged",
        on_gap: Literal["unchanged", "fail", "rebuild"] = "unchanged",
        keep_versions: str = "",
        history: str = "",
        time_out: str = "",
    ) -> StoreUpdated:
        """Change an adjunct store. What is not given, empty or unchanged is not changed."""
    def update_stream(
        self,
        stream: str,
        *,
        complete_until: str = "",
        dry_run: bool = False,
        event_time: str = "",
        event_time_ahead: str = "",
        event_time_back: str = "",
        on_missing_key: Literal["unchanged", "fail", "quarantine", "spread"] = "unchanged",
        on_bad_rows: Literal["unchanged", "fail", "quarantine"] = "unchanged",
        on_new_column: Literal["unchanged", "refuse", "add"] = "unchanged",
        refuse_erased: Literal["unchanged", "yes", "no"] = "unchanged",
        retention: Literal["unchanged", "keep", "age", "size", "consumed"] = "unchanged",
        retain_min_age: str = "",
        retain_max_age: str = "",
        retain_min_bytes: str = "",
        retain_max_bytes: str = "",
        cuts_every: str = "",
        scaling: Literal["unchanged", "fixed", "event_rate", "byte_rate"] = "unchanged",
        target_rate: int = 0,
        scale_factor: int = 0,
        max_segments: str = "",
        scale_cooldown: str = "",
        publish: Literal["unchanged", "none", "iceberg"] = "unchanged",
        owner: str = "",
        tags: list[str] = ...,
        segments: int = 0,
        more_columns: str = "",
        defaults: list[str] = ...,
        rename_columns: list[str] = ...,
        drop_columns: list[str] = ...,
        widen_columns: str = "",
        allow_named: bool = False,
        allow_loss: bool = False,
    ) -> StreamUpdated:
        """Change the configuration of a stream. What is not given, empty or unchanged is not changed;
        `none` removes a limit."""
    def checkpoint_reader_group(
        self,
        reader_group: str,
        name: str,
        *,
        barrier: bool = False,
        patience: int = 3600,
        cancel: bool = False,
    ) -> Checkpointed:
        """Record the position of a reader group under a name."""
    def create_reader_group(
        self,
        reader_group: str,
        streams: list[str],
        *,
        start: str = "head",
        subscriber: bool = True,
        on_gap: Literal["fail", "skip"] = "fail",
        release: Literal["automatic", "manual"] = "automatic",
        time_out: str = "",
        max_outstanding: int = 3,
        aligned: bool = False,
        max_ahead: str = "",
        owner: str = "",
        subject: str = "",
        end: str = "",
        allow_loss: bool = False,
        allow_truncated: bool = False,
    ) -> GroupCreated:
        """Create a reader group."""
    def delete_reader_group(self, reader_group: str, *, dry_run: bool = False) -> GroupDeleted:
        """Delete a reader group with its positions, batches and checkpoints; its outputs are kept."""
    def fork_reader_group(
        self,
        reader_group: str,
        new_reader_group: str,
        *,
        at: str = "",
        subscriber: bool = True,
        allow_loss: bool = False,
        allow_truncated: bool = False,
    ) -> GroupCreated:
        """Create a reader group that begins where another one is or was."""
    def reader_offline(self, reader_group: str, reader: str, *, position: str = "") -> ReaderGone:
        """Take a reader out of a group by hand."""
    def release_reader_group(
        self, reader_group: str, *, at: str = "position", generation: int = -1
    ) -> Released:
        """Let retention truncate what a subscriber no longer needs."""
    def reset_reader_group(
        self,
        reader_group: str,
        to: str,
        *,
        allow_repeat: bool = False,
        dry_run: bool = False,
        allow_loss: bool = False,
        allow_truncated: bool = False,
    ) -> GroupReset:
        """Move a reader group to a starting point."""
    def update_reader_group(
        self,
        reader_group: str,
        *,
        subscriber: Literal["unchanged", "yes", "no"] = "unchanged",
        on_gap: Literal["unchanged", "fail", "skip"] = "unchanged",
        release: Literal["unchanged", "automatic", "manual"] = "unchanged",
        time_out: str = "",
        max_outstanding: int = 0,
        aligned: Literal["unchanged", "yes", "no"] = "unchanged",
        max_ahead: str = "",
        owner: str = "",
        subject: str = "",
        streams: list[str] = ...,
        start: str = "head",
        pins: list[str] = ...,
        generation: int = -1,
        allow_loss: bool = False,
        allow_truncated: bool = False,
    ) -> GroupUpdated:
        """Change the configuration of a reader group. What is not given, empty or unchanged is not
        changed."""
    def apply(
        self,
        *,
        file: str = "",
        text: str = "",
        dry_run: bool = False,
        allow_loss: bool = False,
        allow_truncated: bool = False,
        allow_named: bool = False,
    ) -> ApplyReport:
        """Make streams, adjunct stores, reader groups and consumers what a file declares. Nothing is
        deleted, and what the file does not name is left alone."""
    def ingest(
        self,
        stream: str,
        files: list[str],
        *,
        format: Literal["auto", "parquet", "csv", "json"] = "auto",
        rename: list[str] = ...,
        null_value: str = "",
        separator: str = ",",
        infer: Literal["types", "strings"] = "types",
        header: bool = True,
        skip_lines: int = 0,
        comment: str = "",
        quote: str = '"',
        escape: str = "",
        encoding: str = "utf-8",
        decimal: str = ".",
        thousands: str = "",
        date_format: str = "",
        timestamp_format: str = "",
        time_zone: str = "UTC",
        last_line: Literal["take", "refuse"] = "take",
        complete_until: str = "",
        allow_repeated_files: bool = False,
        batch_id: str = "",
        engine: Literal["auto", "spark", "pyarrow"] = "auto",
    ) -> CommittedReport:
        """Append files to a stream, as one transaction."""
    def process(
        self,
        reader_group: str,
        *,
        function: str = "",
        outputs: list[str] = ...,
        order: Literal["segment", "stream", "none"] = "segment",
        engine: Literal["auto", "spark", "pyarrow"] = "auto",
        readers: int = 1,
        on_error: Literal["stop", "split", "quarantine"] = "stop",
        label: str = "",
        parameters: dict[str, Any] = ...,
        batch_events: int = 0,
        batch_bytes: str = "",
        batch_files: int = 0,
        retries: int = 0,
        adjuncts: list[str] = ...,
        manager: str = "",
    ) -> Consumed:
        """Call a function with what a reader group has not read yet, exactly once. What is not given
        has the value that was declared for the group's consumer, if any."""
    def put_back(
        self,
        reader_group: str,
        *,
        function: str = "",
        outputs: list[str] = ...,
        parameters: dict[str, Any] = ...,
    ) -> Consumed:
        """Call the function of a consumer, after it was mended, with the events that it has rejected.
        Each of them is put back once. Rows that an append has rejected never became events: correct
        them, and append them again."""
    def adjunct(self, *, adjunct_stores: list[str] = ...) -> AdjunctReport:
        """Build versions of the adjunct stores whose streams have moved."""
    def audit(self, *, everything: bool = False, files: bool = False) -> AuditReport:
        """Prove from the ledger that every event was delivered once, is kept, or is lost for a
        reason."""
    def checkpoints(self) -> CheckpointsReport:
        """Make a checkpoint of each reader group that has moved, and report its lag. Before that, the
        segments of readers whose lease has expired are freed."""
    def compact(
        self, *, streams: list[str] = ..., at_most: str = "", seconds: int = 0
    ) -> CompactReport:
        """Put neighbouring small files of streams together, unseen by readers."""
    def publish(self, *, streams: list[str] = ..., dry_run: bool = False) -> PublishReport:
        """Publish what is new of streams as tables that other engines read."""
    def recover(
        self,
        *,
        unknown_files: Literal["report", "keep", "delete"] = "report",
        second_name: bool = False,
        erased: list[str] = ...,
    ) -> RecoverReport:
        """Reconcile a restored database with its warehouse: report the files that it does not know, and
        let it continue beyond everything that was given out before."""
    def retention(self, *, dry_run: bool = False, streams: list[str] = ...) -> RetentionReport:
        """Decide what to truncate of each stream, truncate it, and delete garbage files."""
    def scale(self, *, dry_run: bool = False, streams: list[str] = ...) -> ScaleReport:
        """Scale the streams whose segments no longer fit their load, by their policies."""
    def stream_cuts(self) -> StreamCutsReport:
        """Record the tail of each stream that has moved, and compare new files with what was recorded
        of them."""
    def upkeep(self) -> UpkeepReport:
        """Abort transactions whose lease has expired, sweep garbage, prune old metadata, and compact
        small files."""
    def verify(
        self,
        *,
        stream: str = "",
        contents: bool = True,
        repair: bool = False,
        since: str = "",
        until: str = "",
        at_most: str = "",
        engine: Literal["auto", "spark", "pyarrow"] = "auto",
    ) -> VerifyReport:
        """Verify that files are there, and that what is in them is what was committed."""
