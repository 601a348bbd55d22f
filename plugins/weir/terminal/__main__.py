"""`weir COMMAND`: look at the streams of an installation, and run its jobs, from a terminal.

The installation is that of `weir.toml` in this folder or one above it, or of WEIR_CONFIG.
"""

import argparse
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import fields
from types import FrameType

import weir
from weir.errors import WeirError
from weir.front_ends import command, speaking
from weir.installation.extras import missing_extra
from weir.operations.jobs import FORMS
from weir.operations.runner import failure_of
from weir.operations.stream_forms import CreateStream
from weir.terminal import look, work
from weir.terminal.backups import backup, restore
from weir.terminal.doctor import doctor
from weir.terminal.find_installation import find_settings, open_database
from weir.terminal.look import Terminal
from weir.terminal.options import Parser, add_arguments, options
from weir.terminal.picture import picture
from weir.terminal.printing import complain, print_json
from weir.terminal.quick_start import without_pandas
from weir.terminal.ui import ui

Command = Callable[..., int]
# Commands of the installation itself: `python -m weir.local` has them.
LOCAL = {
    "up": "start Postgres and Airflow on this machine (--no-airflow: Postgres only; --examples; "
    "--spark: a Spark that jobs share)",
    "down": "stop them; the data stays",
    "status": "say what runs",
    "login": "print where to log in, with the passwords",
    "psql": "read the views by SQL",
}
# The jobs whose commands do or print more than those of others.
COMMANDS: dict[str, Command] = {
    "ingest": work.ingest, "process": work.process, "apply": work.apply,
    "recover": work.recover,
}  # fmt: skip


_BEFORE = ("doctor", "backup", "restore")  # look themselves whether there is a database
_OF_FILES = ("ingest", "read", "tail")  # read files, and call nothing of a user


class Terminated(KeyboardInterrupt):
    """SIGTERM has come; what Ctrl-C ends ends for it, too."""


def parser(only: str = "") -> Parser:
    """Return the parser of the whole command line; `only`: of this command, if it is that of a job,
    without the others, which need not be imported then."""
    made = Parser(
        prog="weir",
        description="Look at streams, and run jobs, from a terminal.",
        epilog="Every command but up, down, status, login and psql takes --json, for programs. The "
        "exit status is 0; 1 if another try may succeed; 2 if it would fail in the same way.",
    )
    made.add_argument("--version", action="version", version=f"weir {weir.__version__}")
    commands = made.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, description in LOCAL.items():
        commands.add_parser(name, help=description, add_help=False)

    def add(name: str, run: Command, description: str | None = None, **defaults: object) -> Parser:
        described = " ".join((description or run.__doc__ or "").split())
        short = described.split(". ")[0].rstrip(".")
        one: Parser = commands.add_parser(
            name, help=short[:1].lower() + short[1:], description=described
        )
        one.add_argument("--json", action="store_true", help="print JSON, for programs")
        one.set_defaults(run=run, **defaults)
        return one

    add("streams", look.streams).add_argument("stream", nargs="?", help="only this one")
    one = add("disk", look.disk)
    one.add_argument("--limit", help="how many rows; 0: all (20; with --json all)")
    add("metrics", look.metrics)
    add("lag", look.lag).add_argument("reader_group", nargs="?", help="only this one")
    one = add("tail", look.tail)
    one.add_argument("stream")
    one.add_argument("-n", dest="number", default="10", help="how many events (10)")
    one.add_argument("--columns", help="these columns, separated by commas")
    one = add("read", look.read)
    one.add_argument("stream")
    one.add_argument("--where", help='a condition over the columns, such as "amount > 10"')
    one.add_argument("--columns", help="these columns, separated by commas")
    one.add_argument("--since", help="what was committed after this time, in UTC")
    one.add_argument("--until", help="what was committed up to this time, in UTC")
    one.add_argument("--event-time-since", help="what happened at or after this time, in UTC")
    one.add_argument("--event-time-until", help="what happened before this time, in UTC")
    one.add_argument("--limit", help="how many events; 0: all (100; with --json all)")
    one = add("why", look.why)
    one.add_argument("stream")
    one.add_argument("path", nargs="?", help="a file or folder of the stream")
    one = add("lineage", look.lineage)
    one.add_argument("of", help="a stream, or a run as DAG/run/task")
    one.add_argument("--down", action="store_true", help="what was made of it")
    one.add_argument("--depth", help="how many commits to follow (all)")
    one.add_argument("--limit", help="how many lines; 0: all (100; with --json all)")
    one.add_argument("--segment", help="only this segment of the stream")
    one.add_argument("--from", dest="first", help="only from this offset of the segment")
    one.add_argument("--to", dest="past", help="only up to this offset, exclusive")
    one = add("outputs", look.outputs)
    one.add_argument("reader_group")
    one.add_argument("--batch", help="of whose events (the newest that another run has read, too)")
    one.add_argument("--output", default="", help="parquet:NAME or stream:NAME (the first)")
    one.add_argument("--other", default="", help="the group of the other run (the same)")
    one.add_argument("--other-batch", help="a batch of the other run (the run before)")
    one.add_argument("--other-output", default="", help="its output (the one of the same name)")
    one.add_argument("--key", default="", help="columns of a key, separated by commas")
    one.add_argument("--limit", default="20", help="how many rows of each kind (20)")
    one = add("picture", picture)
    one.add_argument("of", help="a stream, or a reader group")
    one.add_argument("-o", "--out", metavar="FILE", help="the file to write (the standard output)")
    one.add_argument("--since", help="what was after this time, in UTC")
    one.add_argument("--until", help="what was up to this time, in UTC")
    add("ui", ui)
    add("doctor", doctor)
    one = add("backup", backup)
    one.add_argument("folder", help="a new folder, which then is the backup")
    one.add_argument(
        "--in-place", action="store_true",
        help="leave the warehouse where it is, and only list its files",
    )  # fmt: skip
    add("restore", restore).add_argument("folder", help="a backup")

    jobs: dict[str, Parser] = {}
    one_job = next((job for job in FORMS.names if command(job) == only), None)
    first = (job for job in ("create_stream", *COMMANDS) if job in FORMS.names)
    for job in [one_job] if one_job else dict.fromkeys([*first, *FORMS]):
        does = COMMANDS.get(job)
        described = does.__doc__ if does else FORMS[job].__doc__
        jobs[job] = add(command(job), does or work.job, described, job=job)
        add_arguments(jobs[job], job)
    if "ingest" in jobs:
        _add_creation(jobs["ingest"])
    if "process" in jobs:
        jobs["process"].add_argument(
            "--stream", dest="create_from", action="append", metavar="STREAM",
            help="create the reader group on this stream, if there is none",
        )  # fmt: skip
    return made


def _add_creation(ingest: Parser) -> None:
    """Add the options for a stream that is to be created."""
    ingest.add_argument(
        *options("ingest", "routing_key"), dest="routing_key", default=argparse.SUPPRESS,
        help="the routing key of the stream, if it is to be created",
    )  # fmt: skip
    for name in ("segments", "schema", "on_new_column", "on_missing_key", "on_bad_rows"):
        meaning = next(o.metadata for o in fields(CreateStream) if o.name == name)["description"]
        ingest.add_argument(
            *options("create_stream", name), dest=name, default=argparse.SUPPRESS,
            help=f"If the stream is to be created: {meaning}",
        )  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    logging.basicConfig(level=logging.WARNING, format="weir: %(message)s", stream=sys.stderr)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # a call that was interrupted
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    try:
        if words[:1] and words[0] in LOCAL:
            return _local(words)
        if not words:
            parser().print_help()
            return 2
        given = parser(words[0]).parse_args(words)
        return _run(given)
    except KeyboardInterrupt as error:
        complain("interrupted")
        return 143 if isinstance(error, Terminated) else 130
    except BrokenPipeError:  # `weir read ... | head`
        sys.stderr.close()
        return 0
    except Exception as raised:
        meant = missing_extra(raised) or raised
        sentence, retryable = failure_of(meant)
        if isinstance(meant, WeirError) and "--json" in words:
            print_json({"error": {"code": meant.code, "sentence": meant.sentence}})
        elif "--json" in words:
            print_json({"error": {"code": None, "sentence": sentence}})
        else:
            complain(sentence)
        return 1 if retryable else 2


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """End what runs, and keep py4j from logging the call that it was in."""
    logging.disable(logging.CRITICAL)
    raise Terminated if number == signal.SIGTERM else KeyboardInterrupt


def _run(given: argparse.Namespace) -> int:
    run: Command = given.run
    with speaking("terminal", FORMS, getattr(given, "job", "")):
        settings = find_settings()
        if given.command in _BEFORE:
            return run(settings, given)
        with open_database(settings) as database:
            return run(Terminal(settings, database, given.json), given)


def _local(words: Sequence[str]) -> int:
    """Run a command of the installation itself."""
    find_settings()
    from weir.local import __main__ as local

    return local.main(words, local.by_weir)


def program() -> int:
    """Run the command line as a process of its own."""
    if sys.argv[1:2] and sys.argv[1] in _OF_FILES:
        without_pandas()
    return main()


if __name__ == "__main__":
    sys.exit(program())
