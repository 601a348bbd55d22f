"""Append files to a stream, as one transaction.

**Parameters.** The stream, and files or folders below an input root, in the order in which their
rows are to be read; Parquet, CSV, TSV or JSON. If the stream has an event time, *Complete until*
states that everything before a time is appended with these files.

**On failure.** Retry or clear the run: no row is lost, and none is appended twice. The same files
again append nothing. A file that another transaction has appended is refused by name.
"""

import json
from dataclasses import dataclass, fields

from weir.arrow.ingest import stage_files
from weir.controller.locks import not_active, read_stream
from weir.controller.transactions import CommittedReport
from weir.errors import InvalidInput, counted
from weir.front_ends import called, give
from weir.inputs.append import FilesOf, append_files
from weir.inputs.csv_header import unfinished
from weir.inputs.files import Inputs, find_inputs
from weir.installation.extras import naming_extras
from weir.kernel.attempt import Attempt, Staged
from weir.kernel.text_options import TextOptions
from weir.model.names import stream_name
from weir.operations.action import DATA, Action, Job
from weir.operations.column_settings import renames
from weir.operations.entries import OUTSIDE_FORMS
from weir.operations.form import ENGINES, RENAME_PATTERN, argument, stream_argument
from weir.operations.runner import run_if_main


@dataclass(frozen=True)
class Ingest:
    """Append files to a stream, as one transaction."""

    stream: str = stream_argument()
    files: list[str] = argument(
        "Files",
        "Files or folders below an input root (in a terminal, of this machine), in the order in "
        "which their rows are to be read. A folder such as dt=2026-01-01 gives its events the "
        "column dt.",
        items={"type": "string", "minLength": 1, "maxLength": 4_096, "exact": OUTSIDE_FORMS},
        minItems=1, maxItems=20_000,
    )  # fmt: skip
    format: str = argument(
        "Format",
        "The format of the files; json has whole objects on each line. auto: by "
        "their endings (.parquet, .csv, .json, .jsonl, .ndjson, and .tsv, which is csv with tabs; "
        "all but .parquet also with .gz or .bz2).",
        "auto", enum=["auto", "parquet", "csv", "json"],
        section="Kind of files",
    )  # fmt: skip
    rename: list[str] = argument(
        "Rename",
        "Columns that the files call otherwise than the stream, as name in the files -> name in "
        "the stream.",
        [], items={"type": "string", "pattern": RENAME_PATTERN, "maxLength": 4_096},
        maxItems=1_000,
        section="Kind of files",
    )  # fmt: skip
    null_value: str = argument(
        "Null (csv)",
        "The text that means null in a csv file.",
        "",
        maxLength=100,
        section="Kind of files",
    )
    separator: str = argument(
        "Separator (csv)",
        r"The character that separates the columns of a csv file; \t for a tab. Files whose "
        "format .tsv shows are read with tabs.",
        ",",
        minLength=1,
        maxLength=10,
        section="Kind of files",
        examples=[",", ";", "|", r"\t"],
    )
    infer: str = argument(
        "Types (csv)",
        "The columns of csv files that the stream does not have. types: a type is taken if each "
        "text comes back from its value (00501, 12D and 3.10 stay text); strings: all are text.",
        "types", enum=["types", "strings"],
        section="Kind of files",
    )  # fmt: skip
    header: bool = argument(
        "Header (csv)", "Whether the first line names the columns; else they are those of the "
        "stream, in their order, or _c0, _c1 ...", True,
        section="How csv files are written",
    )  # fmt: skip
    skip_lines: int = argument(
        "Lines to skip (csv)", "How many lines at the beginning of each file are none of its data.",
        0, minimum=0, maximum=10_000,
        section="How csv files are written",
    )  # fmt: skip
    comment: str = argument(
        "Comment (csv)", "The character with which lines begin that are no rows. Empty: none.", "",
        maxLength=10,
        section="How csv files are written", examples=["#"],
    )  # fmt: skip
    quote: str = argument(
        "Quote (csv)", "The character around values that contain the separator; none: no value is "
        "quoted.", '"', maxLength=10,
        section="How csv files are written", examples=['"', "'", "none"],
    )  # fmt: skip
    escape: str = argument(
        "Escape (csv)", r"The character before a quote within quotes, such as \. Empty: a quote is "
        "doubled.", "", maxLength=10,
        section="How csv files are written", examples=["\\"],
    )  # fmt: skip
    encoding: str = argument(
        "Encoding (csv)", "The encoding of the files, such as windows-1252, latin-1 or utf-16.",
        "utf-8", maxLength=40,
        section="How csv files are written",
        examples=["utf-8", "windows-1252", "iso-8859-15", "utf-16"],
    )  # fmt: skip
    decimal: str = argument(
        "Decimal mark (csv)",
        "What stands before the decimals of a number: a full stop or a comma.",
        ".", maxLength=10,
        section="How numbers and times are written", examples=[".", ","],
    )  # fmt: skip
    thousands: str = argument(
        "Thousands (csv)",
        "What stands between groups of three digits of a number. Empty: nothing.",
        "", maxLength=10,
        section="How numbers and times are written", examples=[",", ".", "'", " "],
    )  # fmt: skip
    date_format: str = argument(
        "Dates (csv, json)", "The format of dates, such as dd.MM.yyyy (Spark's patterns). Empty: "
        "2026-02-28.", "", maxLength=100,
        section="How numbers and times are written",
        examples=["dd.MM.yyyy", "MM/dd/yyyy", "yyyyMMdd"],
    )  # fmt: skip
    timestamp_format: str = argument(
        "Times (csv, json)", "The format of times, such as dd.MM.yyyy HH:mm (Spark's patterns). "
        "Empty: 2026-02-28 23:59:59, also with a T, fractions, Z or an offset.", "", maxLength=100,
        section="How numbers and times are written",
        examples=["dd.MM.yyyy HH:mm", "MM/dd/yyyy HH:mm:ss", "yyyyMMddHHmmss"],
    )  # fmt: skip
    time_zone: str = argument(
        "Time zone (csv, json)", "What times without a zone mean, such as Europe/Berlin.", "UTC",
        maxLength=100,
        section="How numbers and times are written",
        examples=["UTC", "Europe/Berlin", "America/New_York"],
    )  # fmt: skip
    last_line: str = argument(
        "Last line (csv)",
        "A last line without a line end may be cut (b,20 of b,2000), and nobody can see it. take: "
        "it is a row, and the run says so; refuse: nothing is appended.",
        "take", enum=["take", "refuse"],
        section="How csv files are written",
    )  # fmt: skip
    complete_until: str = argument(
        "Complete until",
        "If the stream has an event time: the time before which everything is appended with these "
        "files, such as 2013-06-01T00:00:00Z; done: all is appended. Empty: nothing is stated.",
        "", maxLength=100,
    )  # fmt: skip
    allow_repeated_files: bool = argument(
        "Allow repeated files",
        "Append files a second time that the stream holds already.",
        False,
        section="More",
    )
    batch_id: str = argument(
        "Batch",
        "An id in place of the files: under it this task appends once, even if a folder has other "
        "files by then. Empty: the files are known by their names.",
        "", maxLength=500, section="More",
    )  # fmt: skip
    engine: str = argument(
        "Engine",
        "What reads the files: spark; pyarrow, without a JVM, for at most 256 MiB; auto: pyarrow "
        "where it can, else spark.",
        "auto", enum=list(ENGINES),
        section="More",
    )  # fmt: skip


def check(job: Job, arguments: Ingest) -> None:
    """Check that the stream takes events, and that the files are there."""
    name = stream_name(arguments.stream, reserved=False)
    stream = job.database.transaction(lambda c: read_stream(c, name))
    if stream.state != "active":
        raise not_active(name, stream.state)
    _inputs(job, arguments)


def _inputs(job: Job, arguments: Ingest) -> Inputs:
    how = TextOptions(**{one.name: getattr(arguments, one.name) for one in fields(TextOptions)})
    inputs = find_inputs(
        arguments.files, job.settings.input_roots, arguments.format, how, arguments.infer,
        renames(arguments.rename, "rename"),
    )  # fmt: skip
    if arguments.last_line != "take" and inputs.format != "csv":
        raise InvalidInput(
            "arguments_conflict",
            f"{called('last_line')} has no effect, because the files are {inputs.format}; leave it "
            "out, or correct the format.",
        )
    return inputs


def run(job: Job, arguments: Ingest) -> CommittedReport:
    """Find the files and append them."""
    name = stream_name(arguments.stream, reserved=False)
    inputs, app = _inputs(job, arguments), job.installation
    size = sum(file.bytes for file in inputs.files)
    read = counted(len(inputs.files), f"{inputs.format} file")
    job.say(f"{read}, {counted(size, 'byte')}, for {name}")
    again = job.request_id if arguments.allow_repeated_files else ""
    batch = None
    if arguments.batch_id:
        task = f"{job.run.dag_id}/{job.run.task_id}"
        batch = f"{task} {arguments.batch_id}", f"files {json.dumps(arguments.files)}"
    cut = unfinished(inputs) if inputs.format == "csv" else {}
    if cut and arguments.last_line == "refuse":
        path, line = next(iter(cut.items()))
        raise InvalidInput(
            "file_invalid",
            f"the last line of {path!r} ({line}) has no line end, so a part of it may be missing; "
            f"check the file, or {give(last_line='take')}.",
        )

    def stage(inputs: Inputs, attempts: list[Attempt]) -> list[Staged]:
        if arguments.engine != "spark":
            try:
                return stage_files(app, inputs, attempts)
            except InvalidInput as error:
                if arguments.engine == "pyarrow" or error.code != "needs_spark":
                    raise
                job.say(f"with Spark: {error.sentence.partition('; ')[0]}")
        with naming_extras():
            from weir.spark.appends.appender import Appender

        return Appender(app).stage_files(inputs, attempts)

    files = FilesOf(name, inputs, again, batch, arguments.complete_until)
    report = append_files(app, files, stage).report()
    if cut and not report["repeated"]:
        report["unfinished"] = list(cut)
    return report


def said(arguments: Ingest, report: CommittedReport) -> str:
    """Say what was appended."""
    number, count = report["transaction_number"], counted(report["events"], "event")
    if report["repeated"]:
        has = f"transaction {number} has these files ({count})"
        return f"{arguments.stream}: nothing appended, as {has}"
    bad = f"; {counted(report['rejected'], 'row')} rejected" if report["rejected"] else ""
    cut = report.get("unfinished", [])
    more = f" and {len(cut) - 1:,} more files" if len(cut) > 1 else ""
    last = f"; the last line of {cut[0]!r}{more} has no line end: check that it is whole" if (
        cut
    ) else ""  # fmt: skip
    return f"{arguments.stream}: {count} appended (transaction {number}{bad}){last}"


ACTION = Action(__file__, Ingest, run, said, DATA, moves_data=True, uses_spark=True, check=check)
run_if_main(ACTION, __name__)
