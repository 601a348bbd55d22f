"""The arguments of the jobs that move data, or that serve all streams."""

from dataclasses import dataclass
from typing import Any

from weir.consumers.engine import ENGINES
from weir.model.amounts import SIZE_PATTERN
from weir.model.names import (
    ADJUNCT_STORE_PATTERN,
    FUNCTION_PATTERN,
    LABEL_PATTERN,
    READABLE_STREAM_PATTERN,
)
from weir.operations.form import (
    OUTPUT_PATTERN,
    argument,
    reader_group_argument,
    stream_argument,
    truncated_argument,
)


@dataclass(frozen=True)
class Ingest:
    """Append files to a stream, as one transaction."""

    stream: str = stream_argument()
    files: list[str] = argument(
        "Files",
        "Files or folders below an input root (in a terminal, of this machine), in the order in "
        "which their rows are to be read. A folder such as dt=2026-01-01 gives its events the "
        "column dt.",
        items={"type": "string", "minLength": 1, "maxLength": 4_096}, minItems=1,
        maxItems=20_000,
    )  # fmt: skip
    format: str = argument(
        "Format",
        "The format of the files; json has whole objects on each line. auto: by "
        "their endings (.parquet, .csv, .json, .jsonl, .ndjson, and .tsv, which is csv with tabs; "
        "all but .parquet also with .gz or .bz2).",
        "auto", enum=["auto", "parquet", "csv", "json"],
    )  # fmt: skip
    null_value: str = argument(
        "Null (csv)", "The text that means null in a csv file.", "", maxLength=100
    )
    separator: str = argument(
        "Separator (csv)",
        r"The character that separates the columns of a csv file; \t for a tab. Files whose "
        "format .tsv shows are read with tabs.",
        ",",
        minLength=1,
        maxLength=10,
    )
    infer: str = argument(
        "Types (csv)",
        "The columns of csv files that the stream does not have. types: a type is taken if each "
        "text comes back from its value (00501, 12D and 3.10 stay text); strings: all are text.",
        "types", enum=["types", "strings"],
    )  # fmt: skip
    header: bool = argument(
        "Header (csv)", "Whether the first line names the columns; else they are those of the "
        "stream, in their order, or _c0, _c1 ...", True,
    )  # fmt: skip
    skip_lines: int = argument(
        "Lines to skip (csv)", "How many lines at the beginning of each file are none of its data.",
        0, minimum=0, maximum=10_000,
    )  # fmt: skip
    comment: str = argument(
        "Comment (csv)", "The character with which lines begin that are no rows. Empty: none.", "",
        maxLength=10,
    )  # fmt: skip
    quote: str = argument(
        "Quote (csv)", "The character around values that contain the separator; none: no value is "
        "quoted.", '"', maxLength=10,
    )  # fmt: skip
    escape: str = argument(
        "Escape (csv)", r"The character before a quote within quotes, such as \. Empty: a quote is "
        "doubled.", "", maxLength=10,
    )  # fmt: skip
    encoding: str = argument(
        "Encoding (csv)", "The encoding of the files, such as windows-1252, latin-1 or utf-16.",
        "utf-8", maxLength=40,
    )  # fmt: skip
    decimal: str = argument(
        "Decimal mark (csv)",
        "What stands before the decimals of a number: a full stop or a comma.",
        ".", maxLength=10,
    )  # fmt: skip
    thousands: str = argument(
        "Thousands (csv)",
        "What stands between groups of three digits of a number. Empty: nothing.",
        "", maxLength=10,
    )  # fmt: skip
    date_format: str = argument(
        "Dates (csv, json)", "The format of dates, such as dd.MM.yyyy (Spark's patterns). Empty: "
        "2026-02-28.", "", maxLength=100,
    )  # fmt: skip
    timestamp_format: str = argument(
        "Times (csv, json)", "The format of times, such as dd.MM.yyyy HH:mm (Spark's patterns). "
        "Empty: 2026-02-28 23:59:59, also with a T, fractions, Z or an offset.", "", maxLength=100,
    )  # fmt: skip
    time_zone: str = argument(
        "Time zone (csv, json)", "What times without a zone mean, such as Europe/Berlin.", "UTC",
        maxLength=100,
    )  # fmt: skip
    complete_until: str = argument(
        "Complete until",
        "If the stream has an event time: the time before which everything is appended with these "
        "files, such as 2013-06-01T00:00:00Z; done: all is appended. Empty: nothing is stated.",
        "", maxLength=100,
    )  # fmt: skip
    allow_repeated_files: bool = argument(
        "Allow repeated files", "Append files a second time that the stream holds already.", False
    )


@dataclass(frozen=True)
class Process:
    """Call a function with what a reader group has not read yet, exactly once. What is not given
    has the value that was declared for the group's consumer, if any.
    """

    reader_group: str = reader_group_argument()
    function: str = argument(
        "Function",
        "module:function of a configured package (in a terminal, of any package). It takes the "
        "events as a DataFrame or a pyarrow table, and returns the same, or a dictionary with one "
        "for each output. Empty: the declared one.",
        "", pattern=FUNCTION_PATTERN, maxLength=500,
    )  # fmt: skip
    outputs: list[str] = argument(
        "Outputs",
        "Where the result goes: stream:scope/stream, parquet:folder below the output root, or "
        "table:schema.table of Weir's database; then its options, such as places=yes. Empty: the "
        "declared ones.",
        [], items={"type": "string", "pattern": OUTPUT_PATTERN, "maxLength": 4_096}, maxItems=100,
    )  # fmt: skip
    order: str = argument(
        "Order",
        "segment: by offset within each segment; stream: in write order; none: fastest.",
        "segment", enum=["segment", "stream", "none"],
    )  # fmt: skip
    engine: str = argument(
        "Engine",
        "What computes: spark gives the function DataFrames; pyarrow gives it tables, without a "
        "JVM, and takes pandas and Polars DataFrames, too; auto: spark, or pyarrow where pyspark "
        "is not installed.",
        "auto", enum=["auto", *ENGINES],
    )  # fmt: skip
    readers: int = argument(
        "Readers",
        "How many tasks share the work. Until all have joined, no task takes more than its share.",
        1, minimum=1, maximum=1000,
    )  # fmt: skip
    on_error: str = argument(
        "When the function fails on events",
        "stop: leave the batch open; split: divide it until the failing event is alone, and stop "
        "there; quarantine: put that event into <stream>.rejected and continue.",
        "stop", enum=["stop", "split", "quarantine"],
    )  # fmt: skip
    label: str = argument(
        "Label",
        "A name for this reader, the same in every run; a pin assigns a range of keys to the "
        "readers of one label. Empty: the map index of its task, if it has one.",
        "", pattern=LABEL_PATTERN,
    )  # fmt: skip
    parameters: dict[str, Any] = argument(
        "Parameters",
        'Further arguments of the function, by their names, such as {"threshold": 10}.',
        {},
    )
    batch_events: int = argument(
        "Events in a batch",
        "The most events that a batch reads; only its first file may exceed it. 0: the setting "
        "batch_events.",
        0, minimum=0, maximum=2**53,
    )  # fmt: skip
    batch_bytes: str = argument(
        "Bytes in a batch", "The most bytes of files, such as 500 MB. Empty: the setting.", "",
        pattern=SIZE_PATTERN,
    )  # fmt: skip
    batch_files: int = argument(
        "Files in a batch", "The most files. 0: the setting.", 0, minimum=0, maximum=1_000_000
    )
    retries: int = argument(
        "Retries of a batch",
        "How often a run reads a batch again that failed, before it splits, quarantines or stops. "
        "Mistakes in the program are not tried again.",
        0, minimum=0, maximum=100,
    )  # fmt: skip
    adjuncts: list[str] = argument(
        "Adjunct stores",
        "Stores, as scope/store, that the function gets in its argument adjuncts, each in a "
        "version that is pinned to the batch. A store's own stream is not delivered.",
        [], items={"type": "string", "pattern": ADJUNCT_STORE_PATTERN}, maxItems=100,
        uniqueItems=True,
    )  # fmt: skip
    manager: str = argument(
        "Manager",
        "module:factory of a configured package, which makes the AdjunctStoreManager that decides "
        "what is delivered. Empty: all streams but those of the stores.",
        "", maxLength=500,
    )  # fmt: skip


@dataclass(frozen=True)
class PutBack:
    """Call the function of a consumer, after it was mended, with the events that it has rejected.
    Each of them is put back once. Rows that an append has rejected never became events: correct
    them, and append them again.
    """

    reader_group: str = reader_group_argument("The group whose consumer has rejected events.")
    function: str = argument(
        "Function", "module:function of a configured package. Empty: the declared one.", "",
        pattern=FUNCTION_PATTERN, maxLength=500,
    )  # fmt: skip
    outputs: list[str] = argument(
        "Outputs", "As when a group is processed. Empty: the declared ones.", [],
        items={"type": "string", "pattern": OUTPUT_PATTERN, "maxLength": 4_096}, maxItems=100,
    )  # fmt: skip
    parameters: dict[str, Any] = argument(
        "Parameters", "As when a group is processed. Empty: the declared ones.", {}
    )


@dataclass(frozen=True)
class Apply:
    """Make streams, adjunct stores, reader groups and consumers what a file declares. Nothing is
    deleted, and what the file does not name is left alone.
    """

    file: str = argument(
        "File",
        "A YAML file below an input root (in a terminal, of this machine); or module:function of "
        "a configured package, marked with @weir.declares, which returns the declarations as a "
        "dictionary. Empty: they are given as text.",
        "", maxLength=4_096,
    )  # fmt: skip
    text: str = argument(
        "Declarations", "The declarations as YAML, instead of a file.", "", maxLength=1_000_000
    )
    dry_run: bool = argument("Dry run", "Only say what differs, and change nothing.", False)
    allow_loss: bool = argument(
        "Allow loss",
        "Also make changes that may lose data: less retention, a stream taken out of a group, a "
        "group that is no subscriber any more. Without it such a file is refused.",
        False,
    )
    allow_truncated: bool = truncated_argument()


@dataclass(frozen=True)
class Retention:
    """Decide what to truncate of each stream, truncate it, and delete garbage files."""

    dry_run: bool = argument(
        "Dry run", "Only say what the run would do, for the given streams or all.", False
    )
    streams: list[str] = argument(
        "Streams", "Decide about these, as scope/stream. Empty: about all that have changed.",
        [], items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, maxItems=20_000,
    )  # fmt: skip


@dataclass(frozen=True)
class Scale:
    """Scale the streams whose segments no longer fit their load, by their policies."""

    dry_run: bool = argument(
        "Dry run", "Only say what the run would do, for the given streams or all.", False
    )
    streams: list[str] = argument(
        "Streams",
        "Decide about these, as scope/stream. Empty: about all that scale by load and have moved.",
        [], items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, maxItems=20_000,
    )  # fmt: skip


@dataclass(frozen=True)
class Recover:
    """Reconcile a restored database with its warehouse: report the files that it does not know, and
    let it continue beyond everything that was given out before.
    """

    unknown_files: str = argument(
        "Unknown files",
        "report: only list them, and change nothing; keep: leave them where they are; delete: "
        "delete them after the grace period.",
        "report", enum=["report", "keep", "delete"],
    )  # fmt: skip
    second_name: bool = argument(
        "Second name",
        "The warehouse is in the same folder as before, under another name, such as another mount: "
        "both names stay right. Off: it was moved, or copied together with its database, and the "
        "old place is refused from then on.",
        False,
    )


@dataclass(frozen=True)
class StreamCuts:
    """Record the tail of each stream that has moved."""


@dataclass(frozen=True)
class Checkpoints:
    """Make a checkpoint of each reader group that has moved, and report its lag. Before that, the
    segments of readers whose lease has expired are freed.
    """


@dataclass(frozen=True)
class Upkeep:
    """Abort transactions whose lease has expired, sweep garbage, and prune old metadata."""
