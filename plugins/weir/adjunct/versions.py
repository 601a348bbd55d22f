"""Find the versions of adjunct stores, with their files and the history of their changes."""

from bisect import bisect_left
from dataclasses import dataclass

from sqlalchemy import Connection

from weir.controller.absent_files import Recorded
from weir.controller.cuts import load_cuts
from weir.controller.queries import Cut
from weir.errors import InvalidInput, NotFound, Truncated
from weir.front_ends import do
from weir.model.schema import Field
from weir.model.stream_cut import at_or_before
from weir.queries.adjunct import versions as sql
from weir.queries.adjunct.versions import AdjunctFile
from weir.warehouse.paths import ADJUNCT


@dataclass(frozen=True)
class AdjunctVersion:
    """A published version of a store: its table at a cut of its stream.

    `fields`: its columns in Spark's JSON form: `_weir_key`, then those of the value. `clock`: all
    events up to this clock are included, and none after it. `layout`: `broadcast` or `partitioned`.
    `has_source`: whether the files also have the columns of the events, in `_weir_source`.
    """

    store_id: int
    store: str
    stream_id: int
    version: int
    definition: int
    cut: Cut
    clock: int
    fields: list[Field]
    rows: int
    bytes: int
    layout: str
    code: str | None
    has_source: bool
    files: tuple[AdjunctFile, ...]


@dataclass(frozen=True)
class History:
    """What held at each clock from some clock on: the rows of a version (None: no rows), and the
    files of all changes after it."""

    base: AdjunctVersion | None
    files: tuple[AdjunctFile, ...]


def find_version(
    connection: Connection, store_id: int, cut: Cut | None = None, clock: int | None = None
) -> AdjunctVersion | None:
    """Return the oldest published version of a store that is complete to a cut of its stream, of
    those with the definition of the newest one; without a cut, the newest version. None if there is
    none.

    `clock`: the clock of the cut, which counts if the segments that the cut names were deleted with
    the stream. It looks at no more versions than the logarithm of their number.
    """
    newest = sql.newest(connection, store_id=store_id)
    if newest is None:
        return None
    if cut is None:
        return _with_files(connection, newest)
    stream_id = newest.stream_id
    try:
        wanted, reached = load_cuts(connection, stream_id, cut, newest.cut)
    except InvalidInput:
        if clock is None:
            raise
        return _with_files(connection, newest) if newest.clock >= clock else None
    if not at_or_before(wanted, reached):
        return None
    older = sql.older(
        connection,
        store_id=store_id,
        version=newest.version,
        definition=newest.definition,
        code=newest.code,
    )

    def complete(row: sql.Older) -> bool:
        try:
            (reached,) = load_cuts(connection, stream_id, row.cut)
        except Truncated:  # its segments were pruned: it is older than whatever is asked for
            return False
        return at_or_before(wanted, reached)

    # If a version is complete to the cut, all later versions are too.
    first = bisect_left(older, True, key=complete)
    if first == len(older):
        return _with_files(connection, newest)
    return read_version(connection, store_id, older[first].version)


def read_version(connection: Connection, store_id: int, version: int) -> AdjunctVersion:
    """Return a version by its number. Raises NotFound if it is not, or no longer, published."""
    found = sql.one(connection, store_id=store_id, version=version)
    if found is None:
        raise NotFound(
            "adjunct_version_not_found",
            f"the adjunct store with number {store_id} has no version {version} (it never "
            "existed, or it has expired); the view weir.adjunct_versions lists those that exist.",
        )
    return _with_files(connection, found)


def history_since(connection: Connection, version: AdjunctVersion, clock: int) -> History:
    """Return the rows of an older version and the changes after it; from these follows the value of
    each key at any clock from `clock` to the version's.

    Call it in a snapshot. Only changes that were made by the definition of the version are known.
    Raises Truncated if they are not kept from that clock on.
    """
    rows = sql.history(
        connection,
        store_id=version.store_id,
        definition=version.definition,
        version=version.version,
        code=version.code,
    )
    wanted: list[int] = []
    reached = version.clock  # all changes after this clock are in the files of `wanted`
    for row in rows:
        if row.state == "published" and reached <= row.clock <= clock:
            base = read_version(connection, version.store_id, row.version)
            return History(base, _history_files(connection, version, wanted))
        if row.history_from is None:
            break
        wanted.append(row.version)
        reached = row.history_from
        if row.kind == "rebuilt":  # from the head on: there was nothing before
            return History(None, _history_files(connection, version, wanted))
    raise Truncated(
        "adjunct_gap",
        f"adjunct store {version.store} does not have the changes since clock {clock}, which an "
        "as-of join needs; to let it keep a longer history, "
        f"{do('update_adjunct_store', adjunct_store=version.store, history='AGE')} (a changed "
        "definition begins a new history).",
    )


def _history_files(
    connection: Connection, version: AdjunctVersion, versions: list[int]
) -> tuple[AdjunctFile, ...]:
    return tuple(sql.history_files(connection, store_id=version.store_id, versions=versions))


def _with_files(connection: Connection, row: sql.Version) -> AdjunctVersion:
    files = sql.files(connection, store_id=row.store_id, version=row.version)
    return AdjunctVersion(**row._asdict(), files=tuple(files))


def recorded_file(connection: Connection, path: str) -> Recorded | None:
    """Return what is recorded of a file of a store's versions; None for another."""
    if not path.startswith(ADJUNCT):
        return None
    row = sql.file(connection, path=path)
    if row is None:
        return None
    advice = "put it back, or define the store anew under another name"
    return Recorded(f"keys of adjunct store {row.name}", row.bytes, advice)
