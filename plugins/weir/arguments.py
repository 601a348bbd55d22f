"""What each job takes: one description, from which come the form in the UI and the job's check.

Kept free of pyspark and airflow: `weir.airflow` makes `Param`s of it, the jobs parse with it.
"""

import re
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, get_type_hints

from weir.amounts import AGE_PATTERN, SIZE_PATTERN, parse_age, parse_size
from weir.errors import InvalidInput
from weir.names import LABEL_PATTERN, READABLE_STREAM_PATTERN, READER_GROUP_PATTERN, STREAM_PATTERN

A = TypeVar("A")
SEGMENT_PATTERN = r"^\d+\.\d+$"
PLACE = (
    "head, tail, time 2013-06-01T00:00:00Z, or a cut such as 0.0=12, 1.0=7 (for several streams "
    '{"nyc/flights": {"0.0": 12}})'
)
FUNCTION_PATTERN = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"


def argument(title: str, description: str, default: Any = MISSING, **schema: Any) -> Any:
    """A field of a form. `schema`: JSON schema keywords (pattern, enum, minimum, items ...)."""
    metadata = {"title": title, "description": description, "schema": schema}
    if isinstance(default, list):
        return field(default_factory=lambda: list(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def _stream(
    description: str = "The stream, as scope/stream.", pattern: str = STREAM_PATTERN
) -> Any:
    return argument("Stream", description, pattern=pattern)


def _release(*unchanged: str) -> Any:
    default = unchanged[0] if unchanged else "automatic"
    return argument(
        "Release",
        "automatic: each checkpoint lets retention delete what it has passed; manual: only what is "
        "released with weir_release_reader_group.",
        default, enum=[*unchanged, "automatic", "manual"],
    )  # fmt: skip


def _time_out() -> Any:
    return argument(
        "Time-out",
        "After this long without activity of its readers a subscriber with unread events holds "
        "nothing back any more, such as 7 d. none: never.",
        "", pattern=AGE_PATTERN,
    )  # fmt: skip


def _reader_group(description: str = "The reader group's name.") -> Any:
    return argument("Reader group", description, pattern=READER_GROUP_PATTERN)


# The settings of retention, in the forms of a stream: title and description.
_RETENTION = {
    "retain_min_age": (
        "Minimum age",
        "What is younger is kept, whoever has consumed it, such as 7 d (s, min, h, d). Without "
        "subscribers what is older is deleted.",
    ),
    "retain_max_age": (
        "Maximum age",
        "What is older is deleted, whoever has not consumed it, such as 30 d.",
    ),
    "retain_min_bytes": (
        "Minimum size",
        "So much of the newest is kept, whoever has consumed it, such as 500 MB (B, kB, MB, GB, "
        "TB). Without subscribers what goes beyond is deleted.",
    ),
    "retain_max_bytes": (
        "Maximum size",
        "What goes beyond is deleted, the oldest first, whoever has not consumed it, such as 2 GB.",
    ),
    "cuts_every": (
        "Cuts every",
        "The least time between two recorded cuts, from which limits of age and size choose. "
        "Empty: every run of weir_stream_cuts.",
    ),
    "retention_every": (
        "Retention every",
        "The least time between two decisions. Empty: every run of weir_retention.",
    ),
}


def _retention(setting: str) -> Any:
    pattern = SIZE_PATTERN if setting.endswith("bytes") else AGE_PATTERN
    return argument(*_RETENTION[setting], "", pattern=pattern)


def _retention_of(form: Any) -> dict[str, int | None]:
    """The settings of retention that were filled in; None for `none`."""
    given = {name: getattr(form, name) for name in _RETENTION}
    return {
        name: parse_size(text) if name.endswith("bytes") else parse_age(text)
        for name, text in given.items()
        if text
    }


@dataclass(frozen=True)
class CreateStream:
    """Create a stream."""

    stream: str = _stream("The name of the new stream, as scope/stream: lower-case letters, "
                          "digits, _ and -.")  # fmt: skip
    routing_key: str = argument(
        "Routing key",
        "A column, or a SQL expression over columns, whose value decides the segment. Events of "
        "one key are read in the order they were written.",
    )
    segments: int = argument(
        "Segments",
        "How many equal ranges of the key space to begin with; more can be made later by scaling.",
        1, minimum=1, maximum=10_000,
    )  # fmt: skip
    on_missing_key: str = argument(
        "Rows without a routing key",
        "fail: refuse the append; quarantine: put them into <stream>.rejected; spread: place them "
        "anywhere, with no order promised.",
        "fail", enum=["fail", "quarantine", "spread"],
    )  # fmt: skip
    on_bad_rows: str = argument(
        "Rows that do not fit the schema",
        "fail: refuse the append; quarantine: put them into <stream>.rejected.",
        "fail", enum=["fail", "quarantine"],
    )  # fmt: skip
    retain_by_consumption: bool = argument(
        "Truncate what is consumed",
        "Delete what all subscribers have consumed. Without a subscriber and a limit nothing is "
        "deleted.",
        True,
    )
    retain_min_age: str = _retention("retain_min_age")
    retain_max_age: str = _retention("retain_max_age")
    retain_min_bytes: str = _retention("retain_min_bytes")
    retain_max_bytes: str = _retention("retain_max_bytes")
    cuts_every: str = _retention("cuts_every")
    retention_every: str = _retention("retention_every")
    min_segments: int = argument(
        "Fewest segments", "A scale that would leave fewer is refused.", 1, minimum=1,
        maximum=10_000,
    )  # fmt: skip
    tags: list[str] = argument(
        "Tags", "Words to find the stream by.", [], items={"type": "string", "minLength": 1}
    )
    schema: str = argument(
        "Columns",
        "The columns as SQL, such as: id BIGINT, name STRING. Empty: as in the first append.",
        "",
    )

    @property
    def retention(self) -> dict[str, int | None]:
        """The settings of retention that were filled in, by their names in `Configuration`."""
        return _retention_of(self)


@dataclass(frozen=True)
class ScaleStream:
    """Seal active segments and create new ones over the same key ranges."""

    stream: str = _stream()
    segments: list[str] = argument(
        "Segments to replace",
        "Active neighbours, as number.epoch (see the view weir.segments): one to split it, "
        "several to merge or divide them anew.",
        items={"type": "string", "pattern": SEGMENT_PATTERN}, minItems=1,
    )  # fmt: skip
    parts: int = argument(
        "Equal parts", "How many new segments of equal range.", 2, minimum=1, maximum=10_000
    )
    boundaries: list[float] = argument(
        "Boundaries",
        "Instead of equal parts: where the new segments divide the key space, between 0 and 1.",
        [], items={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
    )  # fmt: skip


@dataclass(frozen=True)
class UpdateStream:
    """Change the configuration of a stream. What is left as it comes stays as it is; `none` takes
    a limit of retention away."""

    stream: str = _stream()
    scaling: str = argument(
        "Scaling",
        "fixed: only by hand; event_rate, byte_rate: kept for scaling by load, with the two "
        "settings below.",
        "unchanged", enum=["unchanged", "fixed", "event_rate", "byte_rate"],
    )  # fmt: skip
    segments: int = argument(
        "Segments",
        "fixed: exactly this many, made anew over equal ranges of keys; by rate: never fewer. 0: "
        "unchanged.",
        0, minimum=0, maximum=10_000,
    )  # fmt: skip
    target_rate: int = argument(
        "Target rate", "Events or bytes per second and segment. 0: unchanged.", 0, minimum=0
    )
    scale_factor: int = argument(
        "Scale factor", "Into how many segments one is split at most. 0: unchanged.", 0, minimum=0
    )
    retain_by_consumption: str = argument(
        "Truncate what is consumed", "Whether what all subscribers have consumed is deleted.",
        "unchanged", enum=["unchanged", "yes", "no"],
    )  # fmt: skip
    retain_min_age: str = _retention("retain_min_age")
    retain_max_age: str = _retention("retain_max_age")
    retain_min_bytes: str = _retention("retain_min_bytes")
    retain_max_bytes: str = _retention("retain_max_bytes")
    cuts_every: str = _retention("cuts_every")
    retention_every: str = _retention("retention_every")
    on_missing_key: str = argument(
        "Rows without a routing key", "As when a stream is created.",
        "unchanged", enum=["unchanged", "fail", "quarantine", "spread"],
    )  # fmt: skip
    on_bad_rows: str = argument(
        "Rows that do not fit the schema", "As when a stream is created.",
        "unchanged", enum=["unchanged", "fail", "quarantine"],
    )  # fmt: skip
    tags: list[str] = argument(
        "Tags", "Words to find the stream by, in place of those it has; a single - removes them.",
        [], items={"type": "string", "minLength": 1},
    )  # fmt: skip
    more_columns: str = argument(
        "More columns",
        "Columns to add, as SQL, such as: gate STRING. They are null in the events there are.",
        "",
    )

    @property
    def changes(self) -> dict[str, Any]:
        """The settings to change, by their names in `Configuration`."""
        given = {
            "scaling": self.scaling,
            "min_segments": self.segments,
            "target_rate": self.target_rate,
            "scale_factor": self.scale_factor,
            "on_missing_key": self.on_missing_key,
            "on_bad_rows": self.on_bad_rows,
        }
        changes: dict[str, Any] = {
            name: value for name, value in given.items() if value not in ("unchanged", 0)
        }
        if self.retain_by_consumption != "unchanged":
            changes["retain_by_consumption"] = self.retain_by_consumption == "yes"
        if self.tags:
            changes["tags"] = () if self.tags == ["-"] else tuple(self.tags)
        return changes | _retention_of(self)


@dataclass(frozen=True)
class SealStream:
    """Make a stream read only for ever."""

    stream: str = _stream(pattern=READABLE_STREAM_PATTERN)


@dataclass(frozen=True)
class DeleteStream:
    """Delete a sealed stream with everything it owned."""

    stream: str = _stream(pattern=READABLE_STREAM_PATTERN)
    unread_too: bool = argument(
        "Unread events too",
        "Delete it although a subscriber has not read all of it.",
        False,
    )


@dataclass(frozen=True)
class TruncateStream:
    """Delete everything before a cut."""

    stream: str = _stream(pattern=READABLE_STREAM_PATTERN)
    cut: str = argument(
        "Cut",
        "The new head: an offset for each segment, such as 0.0=12, 1.0=7 (see the view "
        "weir.retention_set). Everything before it is deleted for all readers.",
    )


@dataclass(frozen=True)
class CreateReaderGroup:
    """Create a reader group."""

    reader_group: str = _reader_group("The name of the new group: lower-case letters, digits, _ "
                                      "and -.")  # fmt: skip
    streams: list[str] = argument(
        "Streams", "The streams it reads, as scope/stream.",
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN}, minItems=1,
    )  # fmt: skip
    start: str = argument("Start", f"Where it begins: {PLACE}.", "head", minLength=1)
    end: str = argument(
        "End", f"Where it stops for good: {PLACE}. Empty: it reads on for ever.", ""
    )
    subscriber: bool = argument(
        "Subscriber", "Whether events are kept until this group has consumed them.", True
    )
    on_gap: str = argument(
        "When events were truncated before it read them",
        "fail: say so and stop; skip: count them and go on at the head.",
        "fail", enum=["fail", "skip"],
    )  # fmt: skip
    release: str = _release()
    time_out: str = _time_out()


@dataclass(frozen=True)
class UpdateReaderGroup:
    """Change the configuration of a reader group. What is left as it comes stays as it is."""

    reader_group: str = _reader_group()
    subscriber: str = argument(
        "Subscriber", "Whether events are kept until this group has consumed them.",
        "unchanged", enum=["unchanged", "yes", "no"],
    )  # fmt: skip
    on_gap: str = argument(
        "When events were truncated before it read them", "As when a group is created.",
        "unchanged", enum=["unchanged", "fail", "skip"],
    )  # fmt: skip
    release: str = _release("unchanged")
    time_out: str = _time_out()
    max_outstanding: int = argument(
        "Waiting checkpoints", "How many may wait for batches at a time. 0: unchanged.", 0,
        minimum=0,
    )  # fmt: skip
    streams: list[str] = argument(
        "Streams", "All streams it reads from now on. Empty: unchanged.", [],
        items={"type": "string", "pattern": READABLE_STREAM_PATTERN},
    )  # fmt: skip
    start: str = argument("Start", f"Where it begins in new streams: {PLACE}.", "head", minLength=1)
    pins: list[str] = argument(
        "Pins",
        "Ranges of keys that readers of one label read, such as nyc/flights 0.25..0.5 big, in "
        "place of those there are; a single - removes them. Empty: unchanged.",
        [], items={"type": "string", "minLength": 1},
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse the change if the group is not of this generation. -1: whichever.",
        -1, minimum=-1,
    )  # fmt: skip


@dataclass(frozen=True)
class ResetReaderGroup:
    """Let a reader group stand at another place."""

    reader_group: str = _reader_group()
    to: str = argument(
        "To", f"Where it goes: start (where it began), checkpoint NAME, {PLACE}.", minLength=1
    )
    allow_repeat: bool = argument(
        "Repeat", "Go back although events that were read and committed are read again.", False
    )


@dataclass(frozen=True)
class ForkReaderGroup:
    """Create a reader group that stands where another does, or did."""

    reader_group: str = _reader_group("The group to begin from; it is left alone.")
    new_reader_group: str = _reader_group("The name of the new group.")
    at: str = argument(
        "At", f"checkpoint NAME (of the first group), {PLACE}. Empty: where it stands now.", ""
    )
    subscriber: bool = argument(
        "Subscriber", "Whether events are kept until the new group has consumed them.", True
    )


@dataclass(frozen=True)
class ReleaseReaderGroup:
    """Let retention delete what a subscriber no longer needs."""

    reader_group: str = _reader_group()
    at: str = argument(
        "At", f"Before where: position (where it stands), checkpoint NAME, {PLACE}.", "position",
        minLength=1,
    )  # fmt: skip
    generation: int = argument(
        "Generation", "Refuse it if the group is not of this generation. -1: whichever.",
        -1, minimum=-1,
    )  # fmt: skip


@dataclass(frozen=True)
class DeleteReaderGroup:
    """Delete a reader group with its positions, batches and checkpoints; its outputs stay."""

    reader_group: str = _reader_group()


@dataclass(frozen=True)
class ReaderOffline:
    """Take a reader out of a group by hand."""

    reader_group: str = _reader_group()
    reader: str = argument("Reader", "The reader's id (see the view weir.readers).", minLength=1)
    position: str = argument(
        "Position",
        "How far it has read of its open batch, such as 0.0=12, 1.0=7 (of several streams "
        '{"nyc/flights": {"0.0": 12}}). Empty: others go on at the last committed position, and '
        "take an open batch over whole.",
        "",
    )


@dataclass(frozen=True)
class CheckpointReaderGroup:
    """Record where a reader group stands, under a name."""

    reader_group: str = _reader_group()
    name: str = argument(
        "Checkpoint", "A name to find it again, such as before-the-migration.",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,199}$",
    )  # fmt: skip
    barrier: bool = argument(
        "Barrier", "Wait for the batches that are open now, and record where the group stands "
        "when they are committed.", False,
    )  # fmt: skip
    cancel: bool = argument("Cancel", "Give up a checkpoint of this name that waits.", False)


@dataclass(frozen=True)
class Ingest:
    """Append files to a stream, as one transaction."""

    stream: str = _stream()
    paths: list[str] = argument(
        "Files",
        "Files or folders below an input root, in the order in which their rows are to be read.",
        items={"type": "string", "minLength": 1}, minItems=1,
    )  # fmt: skip
    format: str = argument(
        "Format", "What the files are; csv needs a header line, json one object per line.",
        "parquet", enum=["parquet", "csv", "json"],
    )  # fmt: skip
    null_value: str = argument("Null (csv)", "What stands for null in a csv file.", "")
    separator: str = argument(
        "Separator (csv)", "What separates the columns of a csv file.", ",", minLength=1
    )
    append_again: bool = argument(
        "Append again", "Append files that the stream holds already a second time.", False
    )


@dataclass(frozen=True)
class Process:
    """Run a function over what a reader group has not read yet, exactly once."""

    reader_group: str = _reader_group()
    function: str = argument(
        "Function",
        "module:function of a configured package; it takes the events as a DataFrame and returns "
        "one, or a dictionary from output to DataFrame.",
        pattern=FUNCTION_PATTERN,
    )  # fmt: skip
    outputs: list[str] = argument(
        "Outputs",
        "Where the result goes: stream:scope/stream, parquet:folder below the output root, or "
        "table:schema.table of Weir's database.",
        items={"type": "string", "pattern": r"^(stream|parquet|table):\S+$"}, minItems=1,
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
        "", pattern=rf"^$|{LABEL_PATTERN}",
    )  # fmt: skip


@dataclass(frozen=True)
class Retention:
    """Decide for every stream what may be truncated, truncate it, and delete dead files."""

    dry_run: bool = argument(
        "Dry run", "Only say what would be done, for all streams or those named.", False
    )
    streams: list[str] = argument(
        "Streams", "Decide for these, as scope/stream. Empty: for all of which something changed.",
        [], items={"type": "string", "pattern": READABLE_STREAM_PATTERN},
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


JOBS: dict[str, type[Any]] = {
    "create_stream": CreateStream,
    "scale_stream": ScaleStream,
    "update_stream": UpdateStream,
    "truncate_stream": TruncateStream,
    "seal_stream": SealStream,
    "delete_stream": DeleteStream,
    "create_reader_group": CreateReaderGroup,
    "update_reader_group": UpdateReaderGroup,
    "reset_reader_group": ResetReaderGroup,
    "fork_reader_group": ForkReaderGroup,
    "release_reader_group": ReleaseReaderGroup,
    "delete_reader_group": DeleteReaderGroup,
    "reader_offline": ReaderOffline,
    "checkpoint_reader_group": CheckpointReaderGroup,
    "ingest": Ingest,
    "process": Process,
    "stream_cuts": Nothing,
    "checkpoints": Nothing,
    "retention": Retention,
    "upkeep": Nothing,
    "recover": Recover,
}


def json_schema(form: type[Any], known: Field[Any]) -> dict[str, Any]:
    """The JSON schema of one argument."""
    kind = get_type_hints(form)[known.name]
    types = {str: "string", int: "integer", bool: "boolean", float: "number"}
    return {"type": types.get(kind, "array"), **known.metadata["schema"]}


def parse(form: type[A], given: dict[str, Any]) -> A:
    """The arguments, checked. Raises InvalidInput naming the argument and what it must be."""
    known = {f.name: f for f in fields(form)}  # type: ignore[arg-type]  # every form is a dataclass
    for name in given:
        if name not in known:
            raise InvalidInput(
                f"{name!r} is not an argument of this job; it takes {', '.join(known) or 'none'}."
            )
    values = {}
    for name, one in known.items():
        if name not in given:
            if one.default is MISSING and one.default_factory is MISSING:
                raise InvalidInput(f"{name!r} is missing: {one.metadata['description']}")
            continue
        value, schema = given[name], json_schema(form, one)
        if not _fits(value, schema):
            raise InvalidInput(f"{name} is {value!r}: {one.metadata['description']}")
        values[name] = value
    return form(**values)


def _fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value fits the few JSON schema keywords that the forms use."""
    kinds = {"string": str, "integer": int, "boolean": bool, "number": (int, float), "array": list}
    if not isinstance(value, kinds[schema.get("type", "string")]):  # type: ignore[arg-type]  # a type or a tuple of them
        return False
    if isinstance(value, bool):
        return bool(schema["type"] == "boolean")
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(
            _fits(part, schema["items"]) for part in value
        )
    if isinstance(value, str):
        return (
            value in schema.get("enum", [value])
            and re.fullmatch(schema.get("pattern", ".*"), value, re.DOTALL) is not None
            and len(value) >= schema.get("minLength", 0)
        )
    return bool(
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and schema.get("exclusiveMinimum", value - 1) < value
        and value < schema.get("exclusiveMaximum", value + 1)
    )
