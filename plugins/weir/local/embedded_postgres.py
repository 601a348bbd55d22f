"""A PostgreSQL server of our own: binaries from a wheel, data in the state folder, TCP.

The wheel's own way of starting it is not used, because as root it opens every folder above the data
to everybody. Here, root's Postgres is below /var/lib/weir and runs as the user `weir`, and only
folders that this module made get another mode.
"""

import logging
import os
import pwd
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from weir.errors import Conflict, Unavailable, WeirError
from weir.local import binaries, ports, processes
from weir.local.state_folder import StateFolder

log = logging.getLogger("weir.local")

_PORT = 15432
# The programs' whole environment. It has no PGOPTIONS, and no LANG of a locale that is missing.
_ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
# Why a server did not start that may start now: somebody took its port; or, after a crash, it met
# the file of an unlogged table that it had begun to reset, which the next start does anew.
_AGAIN = re.compile(r"Address already in use|could not create file [^\n]*: File exists")
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",  # a socket's path must be short, and Java can't use sockets
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
# For throw-away servers, whose data nobody needs after a crash of the machine, and whose passwords
# nobody guesses meanwhile: to hash one 4096 times is half of what a connection costs a client.
_FAST = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "scram_iterations": "1",
}


class EmbeddedPostgres:
    """The server of one state folder. Its data survives a stop. `start` and `stop` may be
    repeated."""

    def __init__(self, state: Path, *, durable: bool = True, memory: Path | None = None) -> None:
        """`memory`: a folder in which a new server keeps its data, instead of on disk."""
        self.state = StateFolder(state)
        self._durable = durable
        self._memory = memory

    def start(self) -> None:
        """Start the server if it does not run. Make its data folder the first time.

        Raises Unavailable if it does not answer or finds no free port, Conflict if its data is
        gone, and WeirError if it cannot be started.
        """
        with self.state.lock("postgres"):
            if os.geteuid() == 0 and not self.state.read("postgres.json"):
                self._set_aside()
            for _ in range(3):  # a server that is found running may be about to exit
                if not self.running():
                    if not self._data.exists():
                        self._make_data()
                    self._forget_dead_postmaster()
                    self._launch()
                if self._becomes_ready():
                    return
            raise Unavailable(
                "database_unavailable",
                f"Postgres does not answer on port {self.port}; read its log, {self._log}.",
            )

    def stop(self) -> None:
        """Shut the server down if it runs, and cut off its sessions."""
        with self.state.lock("postgres"):
            if self.running():
                try:
                    self._pg_ctl("stop", "-m", "fast", "-t", "60")
                except WeirError as error:
                    log.warning("Postgres does not stop in time, and is killed: %s", error)
            self._kill()

    def kill(self) -> None:
        """Stop the server as a crash would, to try out an outage. `start` recovers it."""
        with self.state.lock("postgres"):
            self._kill()

    def remove(self) -> None:
        """Stop the server and delete its data."""
        self.stop()
        shutil.rmtree(self.home, ignore_errors=True)

    def running(self) -> bool:
        """Return whether the server process lives."""
        return any(self._is_postmaster(process.pid) for process in processes.working_in(self._data))

    @property
    def port(self) -> int:
        """Return the port on 127.0.0.1 at which the server listens, or last listened. Raises
        Conflict if it was never started."""
        port = self.state.read("postgres.json").get("port")
        if port is None:
            raise Conflict(
                "not_started", f"there is no Postgres in {self.state.path} yet; start it first."
            )
        return int(port)

    @property
    def rounds(self) -> int:
        """Return how many times a password is hashed for a login."""
        return 4096 if self._durable else int(_FAST["scram_iterations"])

    @property
    def home(self) -> Path:
        """Return the folder of the data and of the server's log."""
        if chosen := self.state.read("postgres.json").get("home"):
            return Path(chosen)
        if self._memory:
            return self._memory / f"weir-{self.state.identity}"
        if os.geteuid() == 0:
            return binaries.COMMON / self.state.identity
        return self.state.path / "postgres"

    def dsn(self, database: str = "weir", user: str = "weir_app") -> str:
        """Return a connection string without the password, but with the name of the file that has
        it."""
        name = "postgres.pgpass" if user == "postgres" else "pgpass"
        file = str(self.state.path / name).replace("\\", "\\\\").replace("'", "\\'")
        return (
            f"host=127.0.0.1 port={self.port} dbname={database} user={user} passfile='{file}'"
            " sslmode=disable gssencmode=disable"
        )

    def psql(self, sql: str, database: str = "postgres", **variables: str) -> str:
        """Run SQL as the superuser, with psql's :'variables'. Return what it prints. Raises
        WeirError if a statement fails."""
        settings = "".join(
            "\\set {} '{}'\n".format(name, value.replace("\\", "\\\\").replace("'", "\\'"))
            for name, value in variables.items()
        )
        program = [str(binaries.wheel() / "bin" / "psql"), "-XqAt", "-v", "ON_ERROR_STOP=1"]
        done = subprocess.run(
            [*program, "-f", "-", self.dsn(database, "postgres")],
            input=settings + sql,  # not with -v, because every user can see a process's arguments
            env=_ENVIRONMENT,
            capture_output=True,
            text=True,
        )
        if done.returncode != 0:
            raise WeirError("setup_failed", f"the set-up of Postgres failed: {done.stderr.strip()}")
        return done.stdout.strip()

    @property
    def _data(self) -> Path:
        return self.home / "data"

    def _make_data(self) -> None:
        """Run `initdb` in a folder with another name, so that an interrupted one is never used."""
        if self.state.read("postgres.json").get("made"):
            raise Conflict(
                "not_started",
                f"the database of {self.state.path} is gone, because {self._data} does not exist; "
                "remove the rest with `make clean` (and the same STATE=).",
            )
        home = self.home
        if self._memory or os.geteuid() == 0:
            self.state.write("postgres.json", {"home": str(home)})
        if os.geteuid() == 0:
            binaries.make_common_folder(home)
            user = binaries.unprivileged_user()
            os.chown(home, user.pw_uid, user.pw_gid)
            home.chmod(0o700)  # the server's log quotes values
        else:
            home.mkdir(mode=0o700, parents=True, exist_ok=True)
        password = self.state.secret("postgres")
        self.state.write_text("postgres.pgpass", f"127.0.0.1:*:*:postgres:{password}\n")
        settings = _SETTINGS if self._durable else _SETTINGS | _FAST
        new = home / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        with tempfile.NamedTemporaryFile("w", dir=home) as file:  # its mode is 0600
            file.write(password)
            file.flush()
            if (owner := self._owner()) is not None:
                os.chown(file.name, owner.pw_uid, owner.pw_gid)
            # The built-in locale is the same everywhere, whatever locales this machine has.
            arguments = ["--username=postgres", "--auth=scram-sha-256", f"--pwfile={file.name}"]
            arguments += ["--encoding=UTF8", "--locale=C", "--locale-provider=builtin"]
            arguments += ["--builtin-locale=C.UTF-8", f"--pgdata={new}"]
            arguments += [f"--set={name}={value}" for name, value in settings.items()]
            self._run("initdb", *arguments, *([] if self._durable else ["--no-sync"]))
        new.rename(self._data)
        self.state.write("postgres.json", self.state.read("postgres.json") | {"made": True})

    def _set_aside(self) -> None:
        """Move away data that an earlier installation left here when somebody deleted its state
        folder."""
        home = self.home
        if home.exists():
            self._kill()
            aside = home.with_name(f"{home.name}-{time.strftime('%Y%m%dT%H%M%S')}")
            home.rename(aside)
            log.warning("%s was deleted once; its database is now in %s", self.state.path, aside)

    def _launch(self) -> None:
        known = self.state.read("postgres.json")
        wanted = known.get("port") or (_PORT if self._durable else None)
        for _ in range(5):
            port = ports.free_port(wanted)
            if wanted and port != wanted:
                log.warning("port %d is taken: Postgres listens on %d instead", wanted, port)
            self.state.write("postgres.json", known | {"port": port})
            before = self._log_size()
            try:
                # After a crash a server may need minutes to recover before it is ready.
                self._pg_ctl("start", "-t", "600", "-l", str(self._log), "-o", f"-p {port}")
                return
            except WeirError as error:
                log_text = (
                    self._log.read_text(errors="replace")[before:] if self._log.exists() else ""
                )
                if not _AGAIN.search(log_text):
                    raise WeirError(
                        "setup_failed",
                        f"Postgres failed to start: {log_text.strip()[-2000:] or error}",
                    ) from None
                wanted = port  # unless another process took it in between
        raise Unavailable(
            "database_unavailable",
            "Postgres found no free port on 127.0.0.1; close programs that listen there.",
        )

    def _becomes_ready(self) -> bool:
        """Wait until the server is ready, also one that another process started. Return False at
        once when the server has exited."""
        end = time.monotonic() + 600
        ready = [str(binaries.wheel() / "bin" / "pg_isready"), "-q", "-h", "127.0.0.1"]
        while subprocess.run([*ready, "-p", str(self.port)], env=_ENVIRONMENT).returncode:
            if time.monotonic() > end or not self.running():
                return False
            time.sleep(0.1)
        return True

    def _forget_dead_postmaster(self) -> None:
        """Delete the pid file of a killed server if Postgres would believe that the server still
        runs.

        It would if the pid now belongs to another process of the same user.
        """
        self._kill()
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def _kill(self) -> None:
        processes.kill(lambda: processes.working_in(self._data))

    def _is_postmaster(self, pid: int) -> bool:
        try:
            return (self._data / "postmaster.pid").read_text().split("\n")[0] == str(pid)
        except FileNotFoundError:
            return False

    def _pg_ctl(self, action: str, *arguments: str) -> None:
        self._run("pg_ctl", action, "-w", "-s", "-D", str(self._data), *arguments)

    def _run(self, program: str, *arguments: str) -> None:
        owner = self._owner()
        # Into a file, because a pipe would stay open in the server.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [str(binaries.server() / "bin" / program), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.home,
                env=_ENVIRONMENT,
                user=owner and owner.pw_uid,
                group=owner and owner.pw_gid,
                extra_groups=owner and [],
            )
            if done.returncode != 0:
                output.seek(0)
                raise WeirError(
                    "setup_failed", f"{program} failed: {output.read().strip()[-2000:]}"
                )

    def _owner(self) -> pwd.struct_passwd | None:
        """Return the user as whom the server must run if not as the current one: for root, the
        folder's owner."""
        return pwd.getpwuid(self.home.stat().st_uid) if os.geteuid() == 0 else None

    @property
    def _log(self) -> Path:
        return self.home / "server.log"

    def _log_size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0
