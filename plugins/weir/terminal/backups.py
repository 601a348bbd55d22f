"""`weir backup` and `weir restore`: an installation as a folder, and back."""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from weir.database.connection import Database
from weir.errors import counted
from weir.front_ends import do
from weir.operations.jobs import FORMS
from weir.settings import Settings
from weir.terminal.find_installation import find_settings, open_database
from weir.terminal.look import Terminal
from weir.terminal.printing import note, print_json, visible
from weir.terminal.work import run_job

_SHOWN = 20
_BESIDE = "keep the input and output folders, weir.toml, secrets and certificates of erasures, too"


def backup(settings: Settings, given: argparse.Namespace) -> int:
    """Back up the database, and the warehouse, into a new folder, while others append, read and
    erase. It is read back before it counts. One that was interrupted goes on. WEIR_DATABASE_OWNER
    is the login that owns the database, unless `weir up` runs it."""
    from weir.local.backup import back_up  # which loads Alembic

    open_database(settings).dispose()  # says why there is none
    _, admin = _logins(settings)
    folder = Path(given.folder).absolute()
    database = Database.of(replace(settings, database=admin))
    try:
        done = back_up(
            database, admin, settings.warehouse, folder, copied=not given.in_place, say=_say
        )
    finally:
        database.dispose()
    for path in done.lacks[:_SHOWN]:
        _say(f"{path} was missing, or is not what was written, so the backup lacks it")
    status = 2 if done.lacks else 0
    if given.json:
        print_json(asdict(done))
        return status
    lacks = f"; {len(done.lacks):,} lack, as said above" if done.lacks else ""
    print(
        visible(
            f"{folder}: {counted(done.files, 'file')}, {done.bytes:,} bytes, as of {done.at}{lacks}"
            f"; {_BESIDE}"
        )
    )
    return status


def restore(settings: Settings, given: argparse.Namespace) -> int:
    """Restore a backup into the database and the warehouse of weir.toml, which have no streams yet.
    Then say what the warehouse and the database lack of each other, as `weir recover` does. Restore
    only what you trust: whoever made a backup lets your login run any SQL, and that of `weir up` is
    a superuser."""
    from weir.local.backup import read_manifest  # which load Alembic
    from weir.local.restore import restore as restore_from

    folder = Path(given.folder).absolute()
    manifest = read_manifest(folder)
    with _running(settings):
        owner, admin = _logins(settings)
        done = restore_from(folder, manifest, owner, admin, settings.warehouse, say=_say)
    settings = find_settings()
    for path in [*done.lacks, *done.damaged][:_SHOWN]:
        of = done.users.get(path, "backup")
        store = of.startswith("adjunct store")
        then = "; delete the store, and define it anew" if store else ", so its events are lacking"
        _say(f"{path} of the {of} is missing or damaged{then}")
    report, sentence = dict[str, Any](lost=[]), "what is unknown here was not looked for"
    if "recover" in FORMS.names:  # of an annex
        with open_database(settings) as database:
            report, sentence = run_job(Terminal(settings, database, given.json), "recover", {})
    status = 2 if done.lacks or done.damaged or report["lost"] else 0
    if given.json:
        print_json({**asdict(done), "recover": report})
        return status
    files, lost = counted(done.files, "file"), len(done.lacks) + len(done.damaged)
    print(visible(f"restored {files} as of {done.at}; {lost:,} lack; {sentence}"))
    for one in report["lost"]:
        print(visible(f"{one['stream']}: {counted(one['events'], 'event')} lost; {one['then']}"))
    if not done.rights:
        print("the login is no superuser, or the database had another owner: give your own tables "
              "their owners and rights again")  # fmt: skip
    print(
        f"nothing is appended, read by groups or deleted yet; "
        f"{do('recover', unknown_files='keep')} when this is right"
    )
    return status


@contextmanager
def _running(settings: Settings) -> Iterator[None]:
    """Let the database of a folder run, with its owners; another one runs already."""
    if settings.database != "service=weir" or "WEIR_DATABASE_OWNER" in os.environ:
        yield
        return
    from weir.local import logins
    from weir.local.installation import Installation  # which loads Alembic

    found = Installation(settings.state)
    found.postgres.start()
    with found.postgres.state.lock("logins"):
        logins.make_owners(found.postgres)
        yield
        logins.make_users(found.postgres)
    found.make_data_folders()


def _logins(settings: Settings) -> tuple[str, str]:
    """Return the logins of the database's owner, and of who may read and give all."""
    if given := os.environ.get("WEIR_DATABASE_OWNER"):
        return given, given
    if settings.database == "service=weir" and (settings.state / "postgres.json").is_file():
        from weir.local.installation import Installation  # which loads Alembic

        postgres = Installation(settings.state).postgres
        return postgres.dsn("weir", "weir_owner"), postgres.dsn("weir", "postgres")
    return "service=weir_owner", "service=weir_owner"


def _say(line: str) -> None:
    note(visible(f"weir: {line}"))
