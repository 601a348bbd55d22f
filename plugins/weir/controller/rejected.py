"""Streams of rejected rows: `<stream>.rejected`, for the rows that did not become its events."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from weir.controller.streams import create_in
from weir.database.connection import Database
from weir.errors import BadRows, Conflict
from weir.front_ends import do
from weir.kernel.attempt import Attempt
from weir.kernel.rejected import BAD_ROW, FAULT, MISSING_KEY
from weir.model.names import StreamName, stream_name
from weir.model.schema import new_field
from weir.model.stream_configuration import Configuration

FIELDS = [
    new_field(name, kind)
    for name, kind in [("row", "string"), ("source", "string"), ("place", "long"),
                       ("reason", "string"), *((name, "string") for name in FAULT)]
]  # fmt: skip
_REJECTED = Configuration("source", on_missing_key="spread", on_new_column="add")


def make_rejected_stream(database: Database, stream: StreamName) -> StreamName:
    """Create `<stream>.rejected` if it does not exist, and return its name."""
    name = stream_name(str(stream.rejected))
    with contextlib.suppress(Conflict):  # it already exists
        database.transaction(lambda c: create_in(c, name, _REJECTED, 1, FIELDS, "rejected"))
    return name


def refused(attempt: Attempt) -> list[str]:
    """Return the reasons for which the stream refuses an append, instead of quarantining rows."""
    policies = {BAD_ROW: attempt.on_bad_rows, MISSING_KEY: attempt.on_missing_key}
    return [reason for reason, policy in policies.items() if policy == "fail"]


class Example(NamedTuple):
    """Rows that are refused for one reason: how many, where the first one is, what it has, and by
    which change of the stream it would fit."""

    reason: str
    number: int
    where: str
    found: str
    change: str = ""


def refusal(attempt: Attempt, refused: Sequence[Example]) -> BadRows:
    """Return the error for an append with rejected rows, of whatever kinds."""
    said, settings = list[str](), dict[str, str]()
    for one in refused:
        what, setting = "do not fit the schema", "on_bad_rows"
        if one.reason == MISSING_KEY:
            what, setting = f"have no routing key ({attempt.routing_key})", "on_missing_key"
        whose = "" if said else f" for stream {attempt.stream}"
        some = one.number if said else f"{one.number} of the rows"
        said.append(f"{some} {what}{whose} ({one.where}: {one.found})")
        settings[setting] = "quarantine"
    changes = "".join(f", or {one.change}" for one in refused if one.change)
    quarantine = do("update_stream", stream=str(attempt.stream), **settings)
    return BadRows(
        "bad_rows",
        f"{' and '.join(said)}, so nothing was appended; correct them{changes}, or to quarantine "
        f"them {quarantine}.",
    )
