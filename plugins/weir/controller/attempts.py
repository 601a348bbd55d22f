"""Attempts at appends while somebody writes their files: held, or aborted if the writing fails."""

import contextlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from weir.controller.transactions import Attempt, abort, ping_all
from weir.database.connection import Database
from weir.errors import Unavailable
from weir.settings import Settings
from weir.warehouse.ownership import check_warehouse_ownership


@contextmanager
def writing(database: Database, settings: Settings, opened: Sequence[Attempt]) -> Iterator[None]:
    """Run a block that writes the files of open attempts and commits them.

    Before the block, check that the warehouse belongs to the database; within it, renew the leases;
    if it raises, abort the attempts. `opened` may grow within the block.

    After Unavailable nothing is aborted: that would wait for Postgres once more, and nobody knows
    whether a commit took place. The leases expire by themselves.
    """
    lease, longest = settings.transaction_lease, settings.transaction_max
    try:
        check_warehouse_ownership(database, settings.warehouse)
        with database.keep_alive(lambda c: ping_all(c, opened, lease, longest), every=lease / 3):
            yield
    except Unavailable:
        raise
    except Exception:
        abort_all(database, opened)
        raise


def abort_all(database: Database, attempts: Sequence[Attempt]) -> None:
    """Abort attempts as far as possible now; the lease of one that cannot be aborted expires."""
    for attempt in attempts:
        with contextlib.suppress(Exception):  # the caller has an error of its own to report
            abort(database, attempt)
