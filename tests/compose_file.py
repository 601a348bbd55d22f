"""docker-compose.yaml as Compose understands it, and the files that its image is given."""

import re
import subprocess
import textwrap
from pathlib import Path
from typing import Any

import yaml

REPOSITORY = Path(__file__).parents[1]
FILE = REPOSITORY / "docker-compose.yaml"
EXAMPLE = (REPOSITORY / ".env.example").read_text()
RAW: dict[str, Any] = yaml.safe_load(FILE.read_text())
VARIABLE = re.compile(r"\$(?:(\$)|\{(\w+)(?::([-?])([^}]*))?\})")
REQUIRED = {"WEIR_SECRETS": "secrets", "AIRFLOW_AUTH_MANAGER": "chosen"}


def interpolated(value: Any, environ: dict[str, str]) -> Any:
    """Return a value as Compose makes it of the variables."""
    if isinstance(value, dict):
        return {key: interpolated(part, environ) for key, part in value.items()}
    if isinstance(value, list):
        return [interpolated(part, environ) for part in value]
    if not isinstance(value, str):
        return value

    def replace(match: re.Match[str]) -> str:
        escaped, name, sign, text = match.groups()
        if escaped:
            return "$"
        if sign == "-":
            return environ.get(name) or text
        assert environ.get(name), f"{name} is not set: {text}"
        return environ[name]

    return VARIABLE.sub(replace, value)


COMPOSE: dict[str, Any] = interpolated(RAW, REQUIRED)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE: str = COMPOSE["x-weir"]["build"]["dockerfile_inline"]
# The files that the Dockerfile writes itself, by their path in the image.
IMAGE_FILES: dict[str, str] = dict(
    re.findall(r"^COPY [^\n]*<<'EOF' (\S+)\n(.*?)^EOF$", DOCKERFILE, re.M | re.S)
)
ENTRY = "/usr/local/bin/weir-entry"
PG_SERVICE: str = COMPOSE["configs"]["pg_service"]["content"]


def make_secrets(folder: Path) -> Path:
    """Make the secrets by the very commands that .env.example shows, and return their folder."""
    lines = re.findall(r"^#   (.*)$", EXAMPLE[: EXAMPLE.index("WEIR_SECRETS=")], re.M)
    script = textwrap.dedent("\n".join(lines))
    subprocess.run(["/bin/sh", "-euc", script], cwd=folder, check=True)
    return folder / "secrets"


def environment_of(service: str, root: Path) -> dict[str, str]:
    """Return the environment of a service, its files below `root` instead of in the container."""
    places = {"/dev/shm": root, "/run/secrets": root / "secrets", "/etc/weir": root}  # noqa: S108
    environ = {name: str(value) for name, value in SERVICES[service]["environment"].items()}
    for place, folder in places.items():
        environ = {name: value.replace(place, str(folder)) for name, value in environ.items()}
    return environ


def write_entry(service: str, root: Path, secrets: Path) -> Path:
    """Write the entry script for `root`, and the secrets that this service has, and no other.
    Return the path of the script."""
    (root / "secrets").mkdir(parents=True, exist_ok=True)
    for name in SERVICES[service]["secrets"]:
        (root / "secrets" / name).write_bytes((secrets / name).read_bytes())
    path = root / "entry"
    path.write_text(IMAGE_FILES[ENTRY].replace("/run/secrets", str(root / "secrets")))
    return path
