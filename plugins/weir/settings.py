"""The settings of an installation: `weir.toml`, each overridable by an environment variable."""

import os
import posixpath
import re
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from weir.errors import InvalidInput

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")


@dataclass(frozen=True)
class Settings:
    """What `weir.toml` says. `{state}` in a value stands for the state folder.

    Every field may be given as WEIR_<FIELD> (lists separated by commas) instead. Times in seconds.
    """

    state: Path = Path(".weir")
    database: str = "service=weir"  # anything libpq takes: a URL, or key=value pairs
    database_reader: str = "service=weir_reader"  # the login that may only read views
    warehouse: str = "{state}/warehouse"
    input_roots: tuple[str, ...] = ("{state}/input",)
    output_roots: tuple[str, ...] = ("{state}/output",)
    function_path: tuple[str, ...] = ()  # folders put on the jobs' PYTHONPATH
    function_packages: tuple[str, ...] = ()  # packages that module:function may name
    grace_period: float = 3600.0  # a dead file is deleted this long after it died
    transaction_lease: float = 600.0  # an append that has not pinged for this long may be aborted
    transaction_max: float = 86400.0  # ... and however often it pings, after this long
    reader_lease: float = 120.0  # a reader that has not renewed for this long may be replaced
    max_batch_time: float = 6 * 3600.0  # ... nor asked for its next batch for this long (0: any)
    checkpoint_history: float = 30 * 86400.0  # automatic checkpoints are kept this long
    metadata_history: float = 7 * 86400.0  # metadata wholly below the head is kept this long
    job_history: float = 90 * 86400.0  # what jobs did is kept this long
    outage_patience: float = 900.0  # how long to wait for Postgres to come back
    connect_patience: float = 30.0  # how long to wait for the first connection
    batch_events: int = 10_000_000  # what one batch reads at most, but for a larger first file
    batch_bytes: int = 4 * 2**30  # ... in bytes of its files
    batch_files: int = 5_000  # ... in files: Spark pays for each


def load(environ: dict[str, str] | None = None) -> Settings:
    """Read the file that WEIR_CONFIG names (default: weir.toml in the current folder, if any).

    Relative paths are relative to that file's folder. Raises InvalidInput naming the setting.
    """
    environ = dict(os.environ) if environ is None else environ
    path = Path(environ.get("WEIR_CONFIG", "weir.toml")).resolve()
    if "WEIR_CONFIG" in environ and not path.is_file():
        raise InvalidInput(f"WEIR_CONFIG names {path}, which is not a file.")
    values: dict[str, Any] = {}
    if path.is_file():
        try:
            values = tomllib.loads(path.read_text())
        except tomllib.TOMLDecodeError as error:
            raise InvalidInput(f"{path} is not valid TOML: {error}.") from error
    known = {field.name: field for field in fields(Settings)}
    unknown = set(values) - set(known)
    if unknown:
        raise InvalidInput(f"{path} has an unknown setting {sorted(unknown)[0]!r}.")
    for name in known:
        if (given := environ.get(f"WEIR_{name.upper()}")) is not None:
            values[name] = given
    base = path.parent
    state = (base / str(values.pop("state", ".weir"))).absolute()
    converted = {name: _convert(name, known[name].default, value) for name, value in values.items()}
    settings = Settings(**{**{n: f.default for n, f in known.items()}, **converted, "state": state})
    if settings.transaction_lease > settings.transaction_max:
        raise InvalidInput(
            f"setting 'transaction_lease' is {settings.transaction_lease:g} s, longer than "
            f"'transaction_max', {settings.transaction_max:g} s; shorten it, or raise the maximum."
        )
    placed = {
        name: _place(getattr(settings, name), state, base)
        for name in ("warehouse", "input_roots", "output_roots", "function_path")
    }
    return Settings(**{**{n: getattr(settings, n) for n in known}, **placed})


def _convert(name: str, default: Any, value: Any) -> Any:
    try:
        if isinstance(default, tuple):
            parts = value.split(",") if isinstance(value, str) else value
            return tuple(str(part).strip() for part in parts if str(part).strip())
        if isinstance(default, (int, float)):
            number = type(default)(value)
            if number < 0:
                raise ValueError
            return number
        return str(value)
    except (TypeError, ValueError):
        kind = "a list" if isinstance(default, tuple) else "a number that is not negative"
        raise InvalidInput(f"setting {name!r} is {value!r}; it must be {kind}.") from None


def _place(value: Any, state: Path, base: Path) -> Any:
    if isinstance(value, tuple):
        return tuple(_place(part, state, base) for part in value)
    text = str(value).replace("{state}", str(state))
    return one_spelling(text) if _URI.match(text) else str((base / text).absolute())


def one_spelling(uri: str) -> str:
    """A URI as it is compared and recorded: `HDFS://nn//weir/./x/` is `hdfs://nn/weir/x`, and
    `hdfs:/x` is `hdfs:///x`. Hosts stay as they are: they may name things in Hadoop's settings."""
    scheme, _, rest = uri.partition(":/")
    host, _, path = rest[1:].partition("/") if rest.startswith("/") else ("", "", rest)
    path = posixpath.normpath("/" + path.lstrip("/")).rstrip("/")
    return f"{scheme.lower()}://{host}{path}"
