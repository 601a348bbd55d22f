"""The commands that do what jobs do: each runs a job's own function in this process, with the same
check of its arguments, and records it in weir.job_runs.

Who types a command may read any file and run any function anyway, so neither roots nor packages are
asked. A stream or a group that a failed command created goes with it."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weir.controller.locks import read_stream
from weir.controller.seal import seal_stream
from weir.controller.streams import schema_by_id
from weir.errors import Conflict, InvalidInput, NotFound, WeirError, counted
from weir.front_ends import do, option, speaking
from weir.local.spark_address import is_named
from weir.local.state_folder import StateFolder
from weir.model.names import StreamName, stream_name
from weir.model.new_columns import AUTOMATIC
from weir.model.stream_configuration import Configuration
from weir.operations.action import Job
from weir.operations.form import parse
from weir.operations.jobs import ACTIONS, FORMS
from weir.operations.runner import by_hand, perform, record_failure
from weir.operations.stream_forms import CreateStream
from weir.reader_groups.groups.lifecycle import delete_reader_group
from weir.retention.delete_stream import delete_stream
from weir.settings import Settings
from weir.terminal.look import Terminal
from weir.terminal.options import given_arguments
from weir.terminal.printing import note, print_json, records, visible
from weir.warehouse.paths import check_regular

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class _Job(Job):
    """A job whose Spark may be started for it."""

    @property
    def spark(self) -> "SparkSession":
        """The session, as of each job."""
        if self._spark is None and is_named(StateFolder(self.settings.state), self.settings):
            from weir.local.installation import Installation  # which needs psutil

            self.settings = Installation(self.settings.state).spark_for(self.settings)
        return super().spark


def run_job(
    terminal: Terminal, job: str, arguments: dict[str, object]
) -> tuple[dict[str, Any], str]:
    """Run a job and return its report and its sentence. What it logs goes to the standard error
    output."""
    running = _Job(job, by_hand(job), terminal.settings, terminal.database)
    with contextlib.redirect_stdout(sys.stderr), speaking("terminal", FORMS, job):
        try:
            return perform(running, ACTIONS[job], arguments), running.sentence
        except (Exception, KeyboardInterrupt) as error:
            record_failure(running, error)
            raise


def job(terminal: Terminal, given: argparse.Namespace) -> int:
    """Run the job that the command names."""
    report, sentence = run_job(terminal, given.job, given_arguments(FORMS[given.job], given))
    note(visible(f"weir: {sentence}"))
    return _print(terminal, report)


def ingest(terminal: Terminal, given: argparse.Namespace) -> int:
    """Append files to a stream, as one transaction. With --key, a stream that is missing is
    created, with the columns of the files."""
    arguments = given_arguments(FORMS["ingest"], given)
    files, settings = _readable(getattr(given, "files", []), terminal.settings)
    arguments["files"] = files
    terminal = replace(terminal, settings=settings)
    wanted = parse(FORMS["ingest"], arguments)
    name = stream_name(wanted.stream, reserved=False)
    _check_files(wanted.files, wanted.format, settings)
    created = _create_if_missing(terminal, name, given)
    try:
        report, sentence = run_job(terminal, "ingest", arguments)
    except (Exception, KeyboardInterrupt):
        if created:
            _undo(terminal, name)
        raise
    fields = terminal.database.snapshot(lambda c: schema_by_id(c, read_stream(c, name).stream_id))
    columns = [{"name": one["name"], "type": _type(one["type"])} for one in fields]
    if terminal.json:
        print_json({**report, "created": created, "columns": columns})
        return 0
    print(visible(sentence))
    print(visible("columns: " + ", ".join(f"{one['name']} {one['type']}" for one in columns)))
    return 0


def _create_if_missing(terminal: Terminal, name: StreamName, given: argparse.Namespace) -> bool:
    """Create the stream if there is none, and return whether that was done. Raises InvalidInput if
    it has another routing key, or if none was given for a new one."""
    key = getattr(given, "routing_key", None)
    try:
        stream = terminal.database.snapshot(lambda c: read_stream(c, name))
    except NotFound:
        if key is None:
            raise NotFound(
                "stream_not_found",
                f"there is no stream {name}; check the name, or add --key COLUMN to create it "
                "(events with the same value in that column keep their order).",
            ) from None
        given.stream = str(name)
        run_job(terminal, "create_stream", given_arguments(CreateStream, given))
        note(f"weir: created stream {name}, with routing key {key}")
        return True
    if key is not None and key.strip() != stream.configuration.routing_key:
        raise InvalidInput(
            "change_impossible",
            f"stream {name} exists and has the routing key "
            f"{stream.configuration.routing_key!r}, not {key!r}; leave --key out, or choose "
            "another stream.",
        )
    _check_same(terminal, name, stream.configuration, given)
    return False


def _check_same(
    terminal: Terminal, name: StreamName, known: Configuration, given: argparse.Namespace
) -> None:
    """Raise InvalidInput for an option of a new stream that would have no effect, because the one
    that is there says otherwise."""
    for setting in ("on_new_column", "on_missing_key", "on_bad_rows"):
        wanted, has = getattr(given, setting, None), getattr(known, setting)
        if wanted not in (None, has, AUTOMATIC):
            raise InvalidInput(
                "arguments_conflict",
                f"{option('create_stream', setting)} {wanted} counts for a new stream, and stream "
                f"{name} exists and has {has}; leave it out, or "
                f"{do('update_stream', stream=str(name), **{setting: wanted})}.",
            )
    if (wanted := getattr(given, "segments", None)) is not None:
        [[has]] = [
            tuple(one.values()) for one in terminal.rows(
                "SELECT count(*) FROM weir.active_segments(:s)", s=str(name))
        ]  # fmt: skip
        if wanted != str(has):
            raise InvalidInput(
                "arguments_conflict",
                f"{option('create_stream', 'segments')} {wanted} counts for a new stream, and "
                f"stream {name} exists and has {has} of them; leave it out, or scale the stream.",
            )
    if getattr(given, "schema", None) is not None:
        raise InvalidInput(
            "arguments_conflict",
            f"{option('create_stream', 'schema')} counts for a new stream, and stream {name} "
            "exists and has its columns; leave it out, or "
            f"{do('update_stream', stream=str(name), more_columns='...')}.",
        )


def _undo(terminal: Terminal, name: StreamName) -> None:
    """Delete the stream that was created for an append that failed: with a wrong routing key it
    would be of no use. It stays if another session uses it by now."""
    request = str(by_hand("ingest"))
    with contextlib.suppress(WeirError):
        if terminal.rows("SELECT 1 FROM transactions WHERE stream = :s AND state <> 'aborted'",
                         s=str(name)):  # fmt: skip
            return
        seal_stream(terminal.database, name, request_id=request)
        delete_stream(terminal.database, name, request_id=request)
        note(
            f"weir: deleted stream {name} again, because nothing was appended; what is to be "
            "changed of it, such as --on-bad-rows, can be given here"
        )


def apply(terminal: Terminal, given: argparse.Namespace) -> int:
    """Make streams, adjunct stores, reader groups and consumers what a file declares, and say what
    differed. With --dry-run nothing is changed; what may lose data needs --allow-loss."""
    arguments = given_arguments(FORMS["apply"], given)
    if "file" in arguments:
        [arguments["file"]], settings = _readable([given.file], terminal.settings)
        terminal = replace(terminal, settings=settings)
    report, sentence = run_job(terminal, "apply", arguments)
    if terminal.json:
        print_json(report)
        return 0
    for one in report["changes"]:
        loses = f" (may lose data: {'; '.join(one['loses'])})" if one["loses"] else ""
        changed = ", ".join(one["changes"]) if one["action"] == "change" else "new"
        print(visible(f"{one['kind']} {one['name']}: {changed}{loses}"))
    print(sentence)
    return 0


def recover(terminal: Terminal, given: argparse.Namespace) -> int:
    """Reconcile a database that was restored, moved or failed over with its warehouse. With
    --erased, files with certificates of erasures, say which of them it does not know."""
    arguments = given_arguments(FORMS["recover"], given)
    arguments["erased"] = [_certificate(path) for path in getattr(given, "erased", [])]
    report, sentence = run_job(terminal, "recover", arguments)
    note(visible(f"weir: {sentence}"))
    return _print(terminal, report)


def _certificate(path: str) -> str:
    check_regular(path, "certificate")
    try:
        return Path(path).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InvalidInput(
            "argument_invalid",
            f"the certificate {path} can't be read ({error}); give a certificate.json that was "
            "kept.",
        ) from None


def process(terminal: Terminal, given: argparse.Namespace) -> int:
    """Call a function with what a reader group has not read yet, exactly once. Without a function,
    the one that `weir apply` declared for the group. With --stream, a reader group that is missing
    is created. A function that is named here may come from any package that Python finds: who types
    this may run any code here."""
    from weir.operations.consumers import Process  # which `weir ingest` does not load

    arguments = given_arguments(Process, given)
    wanted = parse(Process, arguments)
    if wanted.function:  # somebody else may have declared the other one
        terminal = replace(terminal, settings=_with_folder(terminal.settings, wanted.function))
    created = _create_group_if_missing(terminal, wanted.reader_group, given.create_from or [])
    try:
        report, sentence = run_job(terminal, "process", arguments)
    except (Exception, KeyboardInterrupt):
        if created:
            _undo_group(terminal, wanted.reader_group)
        raise
    if terminal.json:
        print_json(report)
        return 0
    print(visible(sentence))
    for one in report["batches"]:
        for path in one["parquet"]:
            print(f"batch {one['batch']}: {path}")
        for table in one["tables"]:
            rows = counted(table["rows"], "row")
            print(f"batch {one['batch']}: {rows} into {table['table']}")
        for stream in one["streams"]:
            events = counted(stream["events"], "event")
            print(f"batch {one['batch']}: {events} into {stream['stream']}")
    return 0


def _with_folder(settings: Settings, function: str) -> Settings:
    """Return settings under which a job may call a function, from this folder before all others
    that Python knows; if a folder of function_path has it too, the job refuses it."""
    here, package = str(Path.cwd()), function.partition(":")[0].partition(".")[0]
    sys.path[:] = [here, *(one for one in sys.path if one != here)]
    return replace(
        settings, function_path=(here, *settings.function_path),
        function_packages=(*settings.function_packages, package),
    )  # fmt: skip


def _create_group_if_missing(terminal: Terminal, group: str, streams: Sequence[str]) -> bool:
    """Create a reader group on streams if there is none, and return whether that was done. Raises
    Conflict if it reads others, and NotFound if there is neither."""
    found = terminal.rows(
        """SELECT s.stream_name FROM reader_group g JOIN reader_group_stream gs USING (group_id)
        JOIN stream s USING (stream_id) WHERE g.name = :g""",
        g=group,
    )
    read = {one["stream_name"] for one in found}
    if read and streams and set(streams) != read:
        raise Conflict(
            "group_exists",
            f"reader group {group} exists and reads {', '.join(sorted(read))}, not "
            f"{', '.join(streams)}; leave --stream out, or choose another name.",
        )
    if read:
        return False
    if not streams:
        raise NotFound(
            "group_not_found",
            f"there is no reader group {group}; check the name, or add --stream STREAM to create "
            "it.",
        )
    given: dict[str, object] = {"reader_group": group, "streams": list(streams)}
    from weir.operations.group_forms import CreateReaderGroup

    parse(CreateReaderGroup, given)
    run_job(terminal, "create_reader_group", given)
    note(f"weir: created reader group {group} on {', '.join(streams)}")
    return True


def _undo_group(terminal: Terminal, group: str) -> None:
    """Delete the reader group that was created for a run that read nothing, as with a wrong
    function or output: it would hold back what retention may truncate."""
    with contextlib.suppress(WeirError):
        if not terminal.rows("SELECT 1 FROM batches WHERE reader_group = :g LIMIT 1", g=group):
            delete_reader_group(terminal.database, group, request_id=str(by_hand("process")))
            note(f"weir: deleted reader group {group} again, because nothing was read")


def _readable(files: Sequence[str], settings: Settings) -> tuple[list[str], Settings]:
    """Return the files as the job takes them, and settings under which it may read them.

    Who types this may read the files of this folder anyway; input roots are for forms. A name that
    is not a file here is one below an input root.
    """
    from weir.inputs.folder_names import is_partition

    local = [one for one in files if "://" not in one and os.path.exists(one)]
    found = [os.path.abspath(one) if one in local else one for one in files]
    roots = [os.path.realpath(root) + os.sep for root in settings.input_roots if "://" not in root]
    outside = [
        real for one in local
        if not (real := os.path.realpath(one)).startswith(tuple(roots))
    ]  # fmt: skip
    if not outside:
        return found, settings
    root = os.path.commonpath([os.path.dirname(one) for one in outside])
    while is_partition(os.path.basename(root)):  # the names of folders may hold columns
        root = os.path.dirname(root)
    return found, replace(settings, input_roots=(*settings.input_roots, root))


def _check_files(files: Sequence[str], kind: str, settings: Settings) -> None:
    """Check that the files exist and can be read, as the job does: before anything is created, or a
    JVM started."""
    from weir.inputs.files import find_inputs

    try:
        find_inputs(files, settings.input_roots, kind)
    except InvalidInput as error:
        if error.code != "file_not_found":
            raise
        roots = ", ".join(settings.input_roots)
        which = "file" if len(files) == 1 else "one of the files"
        raise InvalidInput(
            "file_not_found",
            f"{which} {', '.join(files)} is neither in this folder nor below an input root "
            f"({roots}); check its path.",
        ) from None


def _print(terminal: Terminal, report: dict[str, object]) -> int:
    if terminal.json:
        print_json(report)
    else:
        print(records(report))
    return 0


def _type(kind: object) -> str:
    return str(kind["type"] if isinstance(kind, dict) else kind)
