"""The settings of an installation: `weir.toml`, each overridable by an environment variable."""

import difflib
import math
import os
import posixpath
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, TypeAlias

from weir.errors import InvalidInput
from weir.source_tree import REPOSITORY

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
# With "=" in a value, PySpark's refusal would quote it, and it may be a token.
_SPARK = re.compile(r"sc://[^\s/:;]+(:\d+)?(/(;[^\s;=]+=[^\s;=]+)*;?)?")
# Variables of Weir that are no settings; those of a deployment may be there, too.
_OTHERS = {"WEIR_CONFIG", "WEIR_DATABASE_OWNER", "WEIR_STACK_ID"}
_Value: TypeAlias = str | float | tuple[str, ...]  # also a bool or an int


@dataclass(frozen=True)
class Settings:
    """What `weir.toml` says. `{state}` in a value stands for the state folder.

    Every field may be given as WEIR_<FIELD> (lists separated by commas) instead. Times in seconds.
    """

    state: Path = Path(".weir")
    # Anything libpq takes: a URL, or key=value pairs. It may have a password.
    database: str = field(default="service=weir", repr=False)
    pooler: bool = False  # a pooler in transaction mode is between: sessions take no options
    pool_size: int = 4  # connections that a process keeps open, of each of two kinds
    # sc://host:port of a Spark that is there, maybe with a token; without, each job starts its own
    spark: str = field(default="", repr=False)
    warehouse: str = "{state}/warehouse"
    input_roots: tuple[str, ...] = ("{state}/input",)
    output_roots: tuple[str, ...] = ("{state}/output",)
    function_path: tuple[str, ...] = ()  # folders in which jobs look for them
    function_packages: tuple[str, ...] = ()  # packages that module:function may name
    grace_period: float = 3600.0  # garbage is kept for this long
    transaction_lease: float = 600.0  # an append that has not pinged for this long may be aborted
    transaction_max: float = 86400.0  # an append is aborted after this long even if it pings
    reader_lease: float = 120.0  # a reader that has not renewed for this long may be replaced
    max_batch_time: float = 6 * 3600.0  # so may one at one batch for so long (0: never)
    checkpoint_history: float = 30 * 86400.0  # automatic checkpoints are kept this long
    metadata_history: float = 7 * 86400.0  # metadata below the head is kept so long
    job_history: float = 90 * 86400.0  # what jobs did, their batches too, is kept this long
    outage_patience: float = 900.0  # how long to wait for Postgres to come back
    connect_patience: float = 30.0  # how long to wait for the first connection
    batch_events: int = 10_000_000  # the most that a batch reads; only its first file may exceed it
    batch_bytes: int = 4 * 2**30  # the most bytes of files that a batch reads
    batch_files: int = 5_000  # the most files that a batch reads; Spark pays for each
    file_bytes: int = 128 * 2**20  # what compaction makes of small files has about as many bytes
    compact_bytes: int = 16 * 2**30  # the most bytes of files that upkeep writes anew; 0: none
    compacted_grace: float = 7 * 86400.0  # files that were put together are kept this long
    compact_time: float = 600.0  # after which upkeep begins to write no further files anew
    pack_after: float = 30 * 86400.0  # commits that are older share rows of the time index; 0: none
    verify_bytes: int = 32 * 2**20  # of files that weir_stream_cuts reads in a run (0: none)
    rejected_events: int = 1_000  # a group with more in 24 hours stops, and so does a build
    metrics_token: str = field(default="", repr=False)  # who gives it may read /weir/metrics
    airflow_name: str = "airflow"  # of several Airflows with one database, each has its own
    functions_of_dags: bool = True  # whether @task.weir_process may call functions of DAG files


def load(environ: dict[str, str] | None = None) -> Settings:
    """Read the file that WEIR_CONFIG names, or that `config_of` finds, if any.

    Relative paths are relative to that file's folder (of a link, to that of the file that it leads
    to); without a file, to the current one. Raises
    InvalidInput naming the setting; also for a variable that is almost the name of one.
    """
    environ = dict(os.environ) if environ is None else environ
    if "WEIR_CONFIG" in environ:
        path = Path(environ["WEIR_CONFIG"]).resolve()
        if not path.is_file():
            raise InvalidInput("setting_invalid", f"WEIR_CONFIG names {path}, which is not a file.")
    else:
        path = config_of(Path.cwd(), os.geteuid()) or Path("weir.toml").resolve()
    values: Mapping[str, object] = {}
    if path.is_file():
        try:
            values = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput("setting_invalid", f"{path} is not valid TOML: {error}.") from error
    return _made(values, path, environ)


def config_of(here: Path, user: int) -> Path | None:
    """Return the weir.toml of a folder, of one above it, or of the source tree.

    A link stands for the file that it leads to, whose folder relative paths are relative to. Raises
    InvalidInput if others than this user or root own or may write it, the link, or the folder of
    one of them: it says from where code is loaded, and anybody may put one into a folder above,
    such as /tmp.
    """
    folders = [here, *here.parents, *([REPOSITORY] if REPOSITORY else [])]
    found = next((one / "weir.toml" for one in folders if (one / "weir.toml").is_file()), None)
    if found is None or found.parent == REPOSITORY:
        return found
    whole = found.resolve()
    why = ""
    if any(one.lstat().st_uid not in (0, user) for one in (found, whole)):
        why = "belongs to another user"
    elif whole.stat().st_mode & stat.S_IWOTH or any(map(_is_open, (found.parent, whole.parent))):
        why = "may be written or replaced by every user"
    if not why:
        return whole
    raise InvalidInput(
        "setting_invalid",
        f"{found} {why}, and says from where code is loaded; name it in WEIR_CONFIG if you trust "
        "it, or let nobody but its owner write it and its folder.",
    )


def _is_open(folder: Path) -> bool:
    """Return whether everybody may replace what others have in a folder, as not in /tmp."""
    mode = folder.stat().st_mode
    return bool(mode & stat.S_IWOTH and not mode & stat.S_ISVTX)


def of_program(database: str, warehouse: str) -> Settings:
    """Return the settings of a program that names its installation itself, without a file: the
    others are those of the environment, or the defaults. Raises InvalidInput if one is missing."""
    for name, value, example in (
        ("database", database, "postgresql://weir_app@host/weir"),
        ("warehouse", warehouse, "a folder or a URI"),
    ):
        if not value:
            raise InvalidInput(
                "argument_missing",
                f"{name} is missing; give both a database and a warehouse ({example}), or "
                "neither, for those of weir.toml.",
            )
    given = {"WEIR_DATABASE": database, "WEIR_WAREHOUSE": warehouse}
    return _made({}, Path("weir.toml").resolve(), {**os.environ, **given})


def of_connection(config: str, given: Mapping[str, object]) -> Settings:
    """Return the settings of a file (none if empty) with those that are given in place of its own.
    Variables of the environment do not count: they are those of another installation. Raises
    InvalidInput as `load` does, and if there is neither a file nor a database and a warehouse."""
    path = Path(config).resolve() if config else Path("weir.toml").resolve()
    if config:
        environ = {"WEIR_CONFIG": config}
        load(environ)  # for its refusals
        values = {**tomllib.loads(path.read_text()), **given}
    else:
        for name in ("database", "warehouse"):
            if not given.get(name):
                raise InvalidInput(
                    "argument_missing",
                    f"{name} is missing; give a settings file, or both a database and a warehouse.",
                )
        values = dict(given)
    return _made(values, path, {})


def hasty(settings: Settings) -> Settings:
    """Return these settings for somebody who asks again, or whom others wait for: with a database
    that is away it does not wait, and it keeps one connection."""
    return replace(settings, outage_patience=0.0, connect_patience=0.0, pool_size=1)


def as_environment(settings: Settings) -> dict[str, str]:
    """Return the variables that say the same as these settings, for another process."""
    texts = {}
    for one in fields(Settings):
        value = getattr(settings, one.name)
        if isinstance(value, tuple):
            value = ",".join(value)
        elif isinstance(value, bool):
            value = str(value).lower()
        texts[f"WEIR_{one.name.upper()}"] = str(value)
    return texts


def _made(values: Mapping[str, object], path: Path, environ: Mapping[str, str]) -> Settings:
    """Return the settings of a file's values and of an environment."""
    known = {field.name: field for field in fields(Settings)}
    for name in sorted(set(values) - set(known)):
        raise InvalidInput(
            "setting_invalid", f"{path} has an unknown setting {name!r}{_meant(name, known)}."
        )
    converted: dict[str, Any] = {
        name: _from_file(name, known[name].default, values[name]) for name in values
    }
    variables = {f"WEIR_{name.upper()}": name for name in known}
    for variable in sorted(name for name in environ if name.startswith("WEIR_")):
        if variable in variables:
            name = variables[variable]
            converted[name] = _from_text(variable, known[name].default, environ[variable])
        elif variable not in _OTHERS and (meant := _meant(variable, variables)):
            raise InvalidInput(
                "setting_invalid", f"the environment variable {variable} is not a setting{meant}."
            )
    base = path.parent
    state = (base / converted.pop("state", ".weir")).absolute()
    settings = Settings(**converted, state=state)
    if settings.transaction_lease > settings.transaction_max:
        raise InvalidInput(
            "setting_invalid",
            f"setting 'transaction_lease' is {settings.transaction_lease:g} s, which is longer "
            f"than 'transaction_max', {settings.transaction_max:g} s; lower the lease or raise "
            "the maximum.",
        )
    if settings.spark and not _SPARK.fullmatch(settings.spark):
        raise InvalidInput(
            "setting_invalid",
            "setting 'spark' is no address of Spark Connect; give it as sc://host:15002 (a = in a "
            "token as %3D), or leave it empty for a Spark of each job's own.",
        )
    placed = {
        name: _place(getattr(settings, name), state, base)
        for name in ("warehouse", "input_roots", "output_roots", "function_path")
    }
    return Settings(**{**{n: getattr(settings, n) for n in known}, **placed})


def _meant(name: str, known: Iterable[str]) -> str:
    """Return ": did you mean ...?" if there is something like it, else nothing."""
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
    return f": did you mean {close[0]!r}" if close else ""


def _from_file(name: str, default: object, value: object) -> _Value:
    """Return a value of weir.toml, of the kind of the default. Raises InvalidInput."""
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(part, str) for part in value):
            return tuple(part.strip() for part in value if part.strip())
    elif isinstance(default, bool):
        if isinstance(value, bool):
            return value
    elif isinstance(default, (int, float)):
        whole = isinstance(value, int) or not isinstance(default, int)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and whole:
            return _number(name, default, value)
    elif isinstance(value, str):
        return value
    raise _wrong(name, default, value)


def _from_text(name: str, default: object, value: str) -> _Value:
    """Return the value of a variable, of the kind of the default. Raises InvalidInput."""
    if isinstance(default, tuple):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise _wrong(name, default, value)
        return value.lower() == "true"
    if isinstance(default, (int, float)):
        try:
            return _number(name, default, type(default)(value))
        except ValueError:
            raise _wrong(name, default, value) from None
    return value


def _number(name: str, default: float, value: float) -> float:
    if not value >= 0 or math.isinf(value):  # NaN is neither
        raise _wrong(name, default, value)
    return type(default)(value)


def _wrong(name: str, default: object, value: object) -> InvalidInput:
    kinds = {
        tuple: "a list of texts",
        bool: "true or false",
        int: "a whole number that is not negative",
        float: "a number that is not negative",
    }
    secret = {one.name for one in fields(Settings) if not one.repr}
    shown = "wrong" if name.lower().removeprefix("weir_") in secret else repr(value)
    kind = kinds.get(type(default), "a text")
    return InvalidInput("setting_invalid", f"setting {name!r} is {shown}; it must be {kind}.")


def _place(value: str | tuple[str, ...], state: Path, base: Path) -> str | tuple[str, ...]:
    if isinstance(value, tuple):
        return tuple(str(_place(part, state, base)) for part in value)
    text = value.replace("{state}", str(state))
    if re.match(r"[^/]*://[^/@]*:[^/]*@", text):
        raise InvalidInput(
            "setting_invalid",
            "weir.toml has a URI with a password, which views, logs and lineage would show; put "
            "the password into Hadoop's settings, or into the variables of its storage.",
        )
    return one_spelling(text) if _URI.match(text) else str((base / text).absolute())


def one_spelling(uri: str) -> str:
    """Return a URI as it is compared and recorded: for `HDFS://nn//weir/./x/` `hdfs://nn/weir/x`,
    for `hdfs:/x` `hdfs:///x`. Hosts stay as they are: they may name things in Hadoop's settings."""
    scheme, _, rest = uri.partition(":/")
    host, _, path = rest[1:].partition("/") if rest.startswith("/") else ("", "", rest)
    path = posixpath.normpath("/" + path.lstrip("/")).rstrip("/")
    return f"{scheme.lower()}://{host}{path}"
