"""Made by `make docs` from the forms of the jobs; actions.py makes the operators."""

from typing import Any, Literal

from airflow.sdk import XComArg

from weir.airflow.operators import WeirJobOperator

class ActionOperator(WeirJobOperator): ...

class BackTestOperator(ActionOperator):
    """Replay a scaling policy over the recorded history of a stream, and change nothing."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        target_rate: int | XComArg = 0,
        scaling: Literal["event_rate", "byte_rate"] | XComArg = "event_rate",
        scale_factor: int | XComArg = 2,
        last: str | XComArg = "",
        min_segments: int | XComArg = 1,
        max_segments: str | XComArg = "",
        scale_cooldown: str | XComArg = "10 min",
        read_files: bool | XComArg = True,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class CreateStreamOperator(ActionOperator):
    """Create a stream."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        routing_key: str | XComArg,
        segments: int | XComArg = 1,
        event_time: str | XComArg = "",
        event_time_ahead: str | XComArg = "none",
        event_time_back: str | XComArg = "31 d",
        on_missing_key: Literal["automatic", "fail", "quarantine", "spread"]
        | XComArg = "automatic",
        on_bad_rows: Literal["fail", "quarantine"] | XComArg = "fail",
        on_new_column: Literal["automatic", "refuse", "add"] | XComArg = "automatic",
        refuse_erased: bool | XComArg = False,
        retention: Literal["keep", "age", "size", "consumed"] | XComArg = "keep",
        retain_min_age: str | XComArg = "",
        retain_max_age: str | XComArg = "",
        retain_min_bytes: str | XComArg = "",
        retain_max_bytes: str | XComArg = "",
        cuts_every: str | XComArg = "",
        scaling: Literal["fixed", "event_rate", "byte_rate"] | XComArg = "fixed",
        target_rate: int | XComArg = 0,
        scale_factor: int | XComArg = 0,
        min_segments: int | XComArg = 1,
        max_segments: str | XComArg = "",
        scale_cooldown: str | XComArg = "10 min",
        publish: Literal["none", "iceberg"] | XComArg = "none",
        owner_role: str | XComArg = "",
        tags: list[str] | XComArg = ...,
        schema: str | XComArg = "",
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class DefineAdjunctStoreOperator(ActionOperator):
    """Define an adjunct store: a keyed table that is kept from a stream."""
    def __init__(
        self,
        *,
        task_id: str,
        adjunct_store: str | XComArg,
        stream: str | XComArg,
        key: str | XComArg = "",
        value: str | XComArg = "",
        delete_when: str | XComArg = "",
        key_type: str | XComArg = "",
        value_columns: str | XComArg = "",
        layout: Literal["auto", "broadcast", "partitioned"] | XComArg = "auto",
        bootstrap: str | XComArg = "batch",
        missing: Literal["wait", "empty", "fail"] | XComArg = "wait",
        patience: int | XComArg = 3600,
        null_key: Literal["skip", "fail"] | XComArg = "skip",
        on_error: Literal["fail", "skip", "quarantine"] | XComArg = "fail",
        on_gap: Literal["fail", "rebuild"] | XComArg = "fail",
        keep_versions: str | XComArg = "1 d",
        history: str | XComArg = "",
        time_out: str | XComArg = "",
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class DeleteAdjunctStoreOperator(ActionOperator):
    """Delete an adjunct store with its versions; its stream is kept."""
    def __init__(
        self,
        *,
        task_id: str,
        adjunct_store: str | XComArg,
        dry_run: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        approval: bool = True,
        **kwargs: Any,
    ) -> None: ...

class DeleteStreamOperator(ActionOperator):
    """Delete a sealed stream with everything that it owns."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        unread_too: bool | XComArg = False,
        dry_run: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        approval: bool = True,
        **kwargs: Any,
    ) -> None: ...

class EraseOperator(ActionOperator):
    """Erase events from a stream and from the streams that were made of it, with a certificate."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        reason: str | XComArg,
        keys: list[str] | XComArg = ...,
        dry_run: bool | XComArg = True,
        condition: str | XComArg = "",
        subject: str | XComArg = "",
        requested_by: str | XComArg = "",
        everything: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        approval: bool = True,
        **kwargs: Any,
    ) -> None: ...

class ScaleOperator(ActionOperator):
    """Seal active segments and create new ones over the same key ranges."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        segments: list[str] | XComArg,
        parts: int | XComArg = 2,
        reason: str | XComArg = "",
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class SealStreamOperator(ActionOperator):
    """Make a stream read-only for ever."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class TruncateOperator(ActionOperator):
    """Truncate all events of a stream before a starting point."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        cut: str | XComArg,
        reader_group: str | XComArg = "",
        dry_run: bool | XComArg = True,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        approval: bool = True,
        **kwargs: Any,
    ) -> None: ...

class UpdateAdjunctStoreOperator(ActionOperator):
    """Change an adjunct store. What is not given, empty or unchanged is not changed."""
    def __init__(
        self,
        *,
        task_id: str,
        adjunct_store: str | XComArg,
        key: str | XComArg = "",
        value: str | XComArg = "",
        delete_when: str | XComArg = "",
        key_type: str | XComArg = "",
        value_columns: str | XComArg = "",
        layout: Literal["unchanged", "auto", "broadcast", "partitioned"] | XComArg = "unchanged",
        bootstrap: str | XComArg = "",
        missing: Literal["unchanged", "wait", "empty", "fail"] | XComArg = "unchanged",
        patience: int | XComArg = 0,
        null_key: Literal["unchanged", "skip", "fail"] | XComArg = "unchanged",
        on_error: Literal["unchanged", "fail", "skip", "quarantine"] | XComArg = "unchanged",
        on_gap: Literal["unchanged", "fail", "rebuild"] | XComArg = "unchanged",
        keep_versions: str | XComArg = "",
        history: str | XComArg = "",
        time_out: str | XComArg = "",
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class UpdateStreamOperator(ActionOperator):
    """Change the configuration of a stream. What is not given, empty or unchanged is not changed;
    `none` removes a limit."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        complete_until: str | XComArg = "",
        dry_run: bool | XComArg = False,
        event_time: str | XComArg = "",
        event_time_ahead: str | XComArg = "",
        event_time_back: str | XComArg = "",
        on_missing_key: Literal["unchanged", "fail", "quarantine", "spread"]
        | XComArg = "unchanged",
        on_bad_rows: Literal["unchanged", "fail", "quarantine"] | XComArg = "unchanged",
        on_new_column: Literal["unchanged", "refuse", "add"] | XComArg = "unchanged",
        refuse_erased: Literal["unchanged", "yes", "no"] | XComArg = "unchanged",
        retention: Literal["unchanged", "keep", "age", "size", "consumed"] | XComArg = "unchanged",
        retain_min_age: str | XComArg = "",
        retain_max_age: str | XComArg = "",
        retain_min_bytes: str | XComArg = "",
        retain_max_bytes: str | XComArg = "",
        cuts_every: str | XComArg = "",
        scaling: Literal["unchanged", "fixed", "event_rate", "byte_rate"] | XComArg = "unchanged",
        target_rate: int | XComArg = 0,
        scale_factor: int | XComArg = 0,
        max_segments: str | XComArg = "",
        scale_cooldown: str | XComArg = "",
        publish: Literal["unchanged", "none", "iceberg"] | XComArg = "unchanged",
        owner_role: str | XComArg = "",
        tags: list[str] | XComArg = ...,
        segments: int | XComArg = 0,
        more_columns: str | XComArg = "",
        defaults: list[str] | XComArg = ...,
        rename_columns: list[str] | XComArg = ...,
        drop_columns: list[str] | XComArg = ...,
        widen_columns: str | XComArg = "",
        allow_named: bool | XComArg = False,
        allow_loss: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class CheckpointOperator(ActionOperator):
    """Record the position of a reader group under a name."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        name: str | XComArg,
        barrier: bool | XComArg = False,
        patience: int | XComArg = 3600,
        cancel: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class CreateReaderGroupOperator(ActionOperator):
    """Create a reader group."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        streams: list[str] | XComArg,
        start: str | XComArg = "head",
        subscriber: bool | XComArg = True,
        on_gap: Literal["fail", "skip"] | XComArg = "fail",
        release: Literal["automatic", "manual"] | XComArg = "automatic",
        time_out: str | XComArg = "",
        max_outstanding: int | XComArg = 3,
        aligned: bool | XComArg = False,
        max_ahead: str | XComArg = "",
        owner_role: str | XComArg = "",
        subject: str | XComArg = "",
        end: str | XComArg = "",
        allow_loss: bool | XComArg = False,
        allow_truncated: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class DeleteReaderGroupOperator(ActionOperator):
    """Delete a reader group with its positions, batches and checkpoints; its outputs are kept."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        dry_run: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        approval: bool = True,
        **kwargs: Any,
    ) -> None: ...

class ForkReaderGroupOperator(ActionOperator):
    """Create a reader group that begins where another one is or was."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        new_reader_group: str | XComArg,
        at: str | XComArg = "",
        subscriber: bool | XComArg = True,
        allow_loss: bool | XComArg = False,
        allow_truncated: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class ReaderOfflineOperator(ActionOperator):
    """Take a reader out of a group by hand."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        reader: str | XComArg,
        position: str | XComArg = "",
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class ReleaseReaderGroupOperator(ActionOperator):
    """Let retention truncate what a subscriber no longer needs."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        at: str | XComArg = "position",
        generation: int | XComArg = -1,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class ResetReaderGroupOperator(ActionOperator):
    """Move a reader group to a starting point."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        to: str | XComArg,
        allow_repeat: bool | XComArg = False,
        dry_run: bool | XComArg = False,
        allow_loss: bool | XComArg = False,
        allow_truncated: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        approval: bool = True,
        **kwargs: Any,
    ) -> None: ...

class UpdateReaderGroupOperator(ActionOperator):
    """Change the configuration of a reader group. What is not given, empty or unchanged is not
    changed."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        subscriber: Literal["unchanged", "yes", "no"] | XComArg = "unchanged",
        on_gap: Literal["unchanged", "fail", "skip"] | XComArg = "unchanged",
        release: Literal["unchanged", "automatic", "manual"] | XComArg = "unchanged",
        time_out: str | XComArg = "",
        max_outstanding: int | XComArg = 0,
        aligned: Literal["unchanged", "yes", "no"] | XComArg = "unchanged",
        max_ahead: str | XComArg = "",
        owner_role: str | XComArg = "",
        subject: str | XComArg = "",
        streams: list[str] | XComArg = ...,
        start: str | XComArg = "head",
        pins: list[str] | XComArg = ...,
        generation: int | XComArg = -1,
        allow_loss: bool | XComArg = False,
        allow_truncated: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class ApplyOperator(ActionOperator):
    """Make streams, adjunct stores, reader groups and consumers what a file declares. Nothing is
    deleted, and what the file does not name is left alone."""
    def __init__(
        self,
        *,
        task_id: str,
        file: str | XComArg = "",
        text: str | XComArg = "",
        dry_run: bool | XComArg = False,
        allow_loss: bool | XComArg = False,
        allow_truncated: bool | XComArg = False,
        allow_named: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        approval: bool = True,
        **kwargs: Any,
    ) -> None: ...

class AppendOperator(ActionOperator):
    """Append files to a stream, as one transaction."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg,
        files: list[str] | XComArg,
        format: Literal["auto", "parquet", "csv", "json"] | XComArg = "auto",
        rename: list[str] | XComArg = ...,
        null_value: str | XComArg = "",
        separator: str | XComArg = ",",
        infer: Literal["types", "strings"] | XComArg = "types",
        header: bool | XComArg = True,
        skip_lines: int | XComArg = 0,
        comment: str | XComArg = "",
        quote: str | XComArg = '"',
        escape: str | XComArg = "",
        encoding: str | XComArg = "utf-8",
        decimal: str | XComArg = ".",
        thousands: str | XComArg = "",
        date_format: str | XComArg = "",
        timestamp_format: str | XComArg = "",
        time_zone: str | XComArg = "UTC",
        last_line: Literal["take", "refuse"] | XComArg = "take",
        complete_until: str | XComArg = "",
        allow_repeated_files: bool | XComArg = False,
        batch_id: str | XComArg = "",
        engine: Literal["auto", "spark", "pyarrow"] | XComArg = "auto",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class ProcessOperator(ActionOperator):
    """Call a function with what a reader group has not read yet, exactly once. What is not given
    has the value that was declared for the group's consumer, if any."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        function: str | XComArg = "",
        outputs: list[str] | XComArg = ...,
        order: Literal["segment", "stream", "none"] | XComArg = "segment",
        engine: Literal["auto", "spark", "pyarrow"] | XComArg = "auto",
        readers: int | XComArg = 1,
        on_error: Literal["stop", "split", "quarantine"] | XComArg = "stop",
        label: str | XComArg = "",
        parameters: dict[str, Any] | XComArg = ...,
        batch_events: int | XComArg = 0,
        batch_bytes: str | XComArg = "",
        batch_files: int | XComArg = 0,
        batch_retries: int | XComArg = 0,
        adjuncts: list[str] | XComArg = ...,
        manager: str | XComArg = "",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class PutBackOperator(ActionOperator):
    """Call the function of a consumer, after it was mended, with the events that it has rejected.
    Each of them is put back once. Rows that an append has rejected never became events: correct
    them, and append them again."""
    def __init__(
        self,
        *,
        task_id: str,
        reader_group: str | XComArg,
        function: str | XComArg = "",
        outputs: list[str] | XComArg = ...,
        parameters: dict[str, Any] | XComArg = ...,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class AdjunctOperator(ActionOperator):
    """Build versions of the adjunct stores whose streams have moved."""
    def __init__(
        self,
        *,
        task_id: str,
        adjunct_stores: list[str] | XComArg = ...,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class AuditOperator(ActionOperator):
    """Prove from the ledger that every event was delivered once, is kept, or is lost for a
    reason."""
    def __init__(
        self,
        *,
        task_id: str,
        everything: bool | XComArg = False,
        files: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class CheckpointsOperator(ActionOperator):
    """Make a checkpoint of each reader group that has moved, and report its lag. Before that, the
    segments of readers whose lease has expired are freed."""
    def __init__(
        self,
        *,
        task_id: str,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class CompactOperator(ActionOperator):
    """Put neighbouring small files of streams together, unseen by readers."""
    def __init__(
        self,
        *,
        task_id: str,
        streams: list[str] | XComArg = ...,
        at_most: str | XComArg = "",
        seconds: int | XComArg = 0,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class PublishOperator(ActionOperator):
    """Publish what is new of streams as tables that other engines read."""
    def __init__(
        self,
        *,
        task_id: str,
        streams: list[str] | XComArg = ...,
        dry_run: bool | XComArg = False,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class RecoverOperator(ActionOperator):
    """Reconcile a restored database with its warehouse: report the files that it does not know, and
    let it continue beyond everything that was given out before."""
    def __init__(
        self,
        *,
        task_id: str,
        unknown_files: Literal["report", "keep", "delete"] | XComArg = "report",
        second_name: bool | XComArg = False,
        erased: list[str] | XComArg = ...,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class RetentionOperator(ActionOperator):
    """Decide what to truncate of each stream, truncate it, and delete garbage files."""
    def __init__(
        self,
        *,
        task_id: str,
        dry_run: bool | XComArg = False,
        streams: list[str] | XComArg = ...,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class ScaleByPolicyOperator(ActionOperator):
    """Scale the streams whose segments no longer fit their load, by their policies."""
    def __init__(
        self,
        *,
        task_id: str,
        dry_run: bool | XComArg = False,
        streams: list[str] | XComArg = ...,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class CaptureOperator(ActionOperator):
    """Record the tail of each stream that has moved, and compare new files with what was recorded
    of them."""
    def __init__(
        self,
        *,
        task_id: str,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class UpkeepOperator(ActionOperator):
    """Abort transactions whose lease has expired, sweep garbage, prune old metadata, and compact
    small files."""
    def __init__(
        self,
        *,
        task_id: str,
        engine: str = "spark",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...

class VerifyOperator(ActionOperator):
    """Verify that files are there, and that what is in them is what was committed."""
    def __init__(
        self,
        *,
        task_id: str,
        stream: str | XComArg = "",
        contents: bool | XComArg = True,
        repair: bool | XComArg = False,
        since: str | XComArg = "",
        until: str | XComArg = "",
        at_most: str | XComArg = "",
        engine: Literal["auto", "spark", "pyarrow"] | XComArg = "auto",
        conn_id: str = "",
        spark_conn_id: str = "spark_default",
        **kwargs: Any,
    ) -> None: ...
