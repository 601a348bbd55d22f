"""Attempts at appends while somebody writes their files: held, or aborted if the writing fails."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from weir.controller.ownership import check_warehouse_ownership
from weir.controller.transactions import abort, ping_all
from weir.database.connection import Database
from weir.errors import Busy, Unavailable, WeirError
from weir.kernel.attempt import Attempt
from weir.settings import Settings

log = logging.getLogger("weir.controller")


@contextmanager
def writing(database: Database, settings: Settings, opened: Sequence[Attempt]) -> Iterator[None]:
    """Run a block that writes the files of open attempts and commits them.

    Before the block, check that the warehouse belongs to the database; within it, renew the leases;
    if it raises, abort the attempts. `opened` may grow within the block.

    While Postgres is away nothing is aborted: that would wait for it once more, and nobody knows
    whether a commit took place. The leases expire by themselves. An attempt that was taken over
    does not end the block; its commit is refused.
    """
    lease, longest = settings.transaction_lease, settings.transaction_max
    try:
        check_warehouse_ownership(database, settings.warehouse)
        with database.keep_alive(lambda c: ping_all(c, opened, lease, longest), every=lease / 3):
            yield
    except BaseException as error:  # also an exit or an interrupt: nobody else would abort it
        if getattr(error, "code", "") != "database_unavailable":
            abort_all(database, opened)
        raise


def abort_all(database: Database, attempts: Sequence[Attempt]) -> None:
    """Abort attempts as far as possible now; the lease of one that cannot be aborted expires.

    Raises nothing, because the caller has an error of its own to report.
    """
    for attempt in attempts:
        try:
            abort(database, attempt)
        except (WeirError, DBAPIError) as error:
            log.info("an append to %s is not aborted, and expires: %s", attempt.stream, error)
            if isinstance(error, Unavailable) and not isinstance(error, Busy):
                return  # each further one would wait as long
