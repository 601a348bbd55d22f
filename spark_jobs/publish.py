"""Publish what is new of streams as tables that other engines read.

**Parameters.** `streams`: which ones, all by default that have the setting `publish`.

The table has the files of the stream, and none is copied: the run writes a new snapshot, which is
the stream up to its tail now, and the catalogue names it. `weir_upkeep` does the same every hour.
`weir.publications` shows how far each stream is published. With `dry_run`, the run only says how
many files it would add and remove.

**On failure.** What is done is kept, and the next run does the rest. If one stream fails, the run
continues with the others, names it, and fails at its end; the table stays what it was.
"""

from dataclasses import dataclass
from typing import TypedDict

from weir.annex.publication.run import Published, publish
from weir.errors import counted
from weir.model.names import stream_name
from weir.operations.action import UPKEEP, Action, Job, complete
from weir.operations.form import argument, streams_argument
from weir.operations.runner import run_if_main


@dataclass(frozen=True)
class Publish:
    """Publish what is new of streams as tables that other engines read."""

    streams: list[str] = streams_argument(
        "Of these, as scope/stream. Empty: of all with the setting publish.", checked=True
    )
    dry_run: bool = argument("Dry run", "Only say what would be published.", False)


class PublishReport(TypedDict):
    """What was done to the tables of streams."""

    published: list[Published]


def run(job: Job, arguments: Publish) -> PublishReport:
    """Publish the given streams, or all."""
    names = [stream_name(stream) for stream in arguments.streams] or None
    published = publish(job.database, job.settings, names, dry_run=arguments.dry_run)
    for one in published:
        job.say(say(one))
    report = PublishReport(published=published)
    return complete(report, published)


def say(one: Published) -> str:
    """Return what was done to a stream, as a line."""
    if "error" in one:
        return f"{one['stream']}: {one['error']}"
    if "ended" in one:
        return f"{one['stream']} is not published any more"
    if "busy" in one:
        return f"{one['stream']}: another run publishes it"
    files = f"{counted(one['added'], 'file')} more, {one['removed']:,} less"
    if "snapshot" in one:
        return f"{one['stream']}: snapshot {one['snapshot']}, {files}"
    return f"{one['stream']}: {files}"


def said(arguments: Publish, report: PublishReport) -> str:
    """Say how many streams have a new snapshot."""
    done = [one for one in report["published"] if "added" in one]
    if arguments.dry_run:
        return f"{counted(len(done), 'stream')} would get a new snapshot"
    return f"{counted(len(done), 'stream')} with a new snapshot" if done else "nothing is new"


ACTION = Action(__file__, Publish, run, said, UPKEEP)
run_if_main(ACTION, __name__)
