"""What the jobs take that move data or look after all streams."""

from dataclasses import dataclass

from weir.model.names import LABEL_PATTERN, READABLE_STREAM_PATTERN
from weir.operations.form import (
    FUNCTION_PATTERN,
    OUTPUT_PATTERN,
    argument,
    reader_group_argument,
    stream_argument,
)


@dataclass(frozen=True)
class Ingest:
    """Append files to a stream, as one transaction."""

    stream: str = stream_argument()
    files: list[str] = argument(
        "Files",
        "Files or folders below an input root, in the order in which their rows are to be read.",
        items={"type": "string", "minLength": 1, "maxLength": 4_096}, minItems=1,
        maxItems=20_000,
    )  # fmt: skip
    format: str = argument(
        "Format",
        "What the files are; csv needs a header line, json one object per line. auto: what their "
        "endings say (.parquet, .csv, .json, .jsonl, .ndjson; text also .gz, .bz2).",
        "auto", enum=["auto", "parquet", "csv", "json"],
    )  # fmt: skip
    null_value: str = argument(
        "Null (csv)", "What stands for null in a csv file.", "", maxLength=100
    )
    separator: str = argument(
        "Separator (csv)",
        r"What separates the columns of a csv file: one character, or \t for a tab.",
        ",",
        minLength=1,
        maxLength=10,
    )
    infer: str = argument(
        "Types (csv)",
        "What the columns of csv files become in a stream that has none yet: types, guessed from "
        "all values (numbers with leading zeros, such as 00501, are text), or strings.",
        "types", enum=["types", "strings"],
    )  # fmt: skip
    append_again: bool = argument(
        "Append again", "Append files that the stream holds already a second time.", False
    )


@dataclass(frozen=True)
class Process:
    """Run a function over what a reader group has not read yet, exactly once."""

    reader_group: str = reader_group_argument()
    function: str = argument(
        "Function",
        "module:function of a configured package; it takes the events as a DataFrame and returns "
        "one, or a dictionary from output to DataFrame.",
        pattern=FUNCTION_PATTERN, maxLength=500,
    )  # fmt: skip
    outputs: list[str] = argument(
        "Outputs",
        "Where the result goes: stream:scope/stream, parquet:folder below the output root, or "
        "table:schema.table of Weir's database.",
        items={"type": "string", "pattern": OUTPUT_PATTERN, "maxLength": 4_096}, minItems=1,
        maxItems=100,
    )  # fmt: skip
    order: str = argument(
        "Order",
        "segment: by offset within each segment; stream: write order over all; none: fastest.",
        "segment", enum=["segment", "stream", "none"],
    )  # fmt: skip
    readers: int = argument(
        "Readers",
        "How many tasks share the work: none takes more than its part before the others have come.",
        1, minimum=1, maximum=1000,
    )  # fmt: skip
    on_error: str = argument(
        "When the function fails on events",
        "stop: leave the batch open; split: halve it until the failing event is alone, and stop "
        "there; quarantine: put that event into <stream>.rejected and go on.",
        "stop", enum=["stop", "split", "quarantine"],
    )  # fmt: skip
    label: str = argument(
        "Label",
        "What pins of the group name this reader by, in every run. Empty: the map index of its "
        "task, if it has one.",
        "", pattern=LABEL_PATTERN,
    )  # fmt: skip


@dataclass(frozen=True)
class Retention:
    """Decide for every stream what may be truncated, truncate it, and delete dead files."""

    dry_run: bool = argument(
        "Dry run", "Only say what would be done, for all streams or those named.", False
    )
    streams: list[str] = argument(
        "Streams", "Decide for these, as scope/stream. Empty: for all of which something changed.",
        [], items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, maxItems=20_000,
    )  # fmt: skip


@dataclass(frozen=True)
class Recover:
    """After a restore from a backup: say what the warehouse holds that the database does not know,
    and let the database go on beyond it."""

    unknown_files: str = argument(
        "Unknown files",
        "report: only say which there are, and change nothing; keep: leave them where they are; "
        "delete: delete them after the grace period.",
        "report", enum=["report", "keep", "delete"],
    )  # fmt: skip


@dataclass(frozen=True)
class Nothing:
    """A job without arguments."""
