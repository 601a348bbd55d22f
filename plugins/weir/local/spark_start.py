"""How Spark starts on one machine: with Weir's settings, and with classes that are loaded already.

A small job of Spark spends most of its time on loading the same classes. Java keeps them in an
archive that each job maps into its memory. `python -m weir.local.spark_start` makes the archive. A
JVM that finds none that fits starts as ever. It uses none if a folder is on its class path, so
Weir's settings are options and not a SPARK_CONF_DIR.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

SETTINGS = Path(__file__).parent / "spark-conf"
ARCHIVE = Path(sys.prefix) / "spark-classes.jsa"
_TRAINING = Path(__file__).parents[1] / "spark/base/training.py"


def class_archive(archive: Path = ARCHIVE, option: str = "SharedArchiveFile") -> str:
    """Return the options with which a JVM uses the archive, if it is there and of that JVM."""
    return f"-XX:{option}='{archive}' -Xlog:cds=off -Xlog:cds+dynamic=off"


def spark_start(environ: Mapping[str, str], archive: str | None = None) -> dict[str, str]:
    """Return the variables with which spark-submit starts as Weir's settings say; none if `environ`
    has SPARK_CONF_DIR, because then that folder says it.

    Options that `environ` has in SPARK_SUBMIT_OPTS come last, so that they win. `archive`: the
    options about the archive; default: `class_archive()`.
    """
    if "SPARK_CONF_DIR" in environ:
        return {}
    lines = (SETTINGS / "spark-defaults.conf").read_text().splitlines()
    settings = dict(line.split(maxsplit=1) for line in lines if line and not line.startswith("#"))
    memory = settings.pop("spark.driver.memory")
    # Not by SPARK_CONF_DIR: a JVM uses no archive if a folder is on its class path, as that one is.
    options = [
        settings.pop("spark.driver.extraJavaOptions"),
        f"-Dlog4j2.configurationFile='{SETTINGS / 'log4j2.properties'}'",
        *(f"-D{name}={value}" for name, value in settings.items()),
        class_archive() if archive is None else archive,
    ]
    ours = " ".join(options)
    given = environ.get("SPARK_SUBMIT_OPTS", "").replace(ours, "").strip()
    return {
        "SPARK_DRIVER_MEMORY": environ.get("SPARK_DRIVER_MEMORY", memory),
        "SPARK_SUBMIT_OPTS": f"{ours} {given}".strip(),
    }


def make_archive(archive: Path = ARCHIVE) -> None:
    """Make the archive, with the classes that a small job loads.

    Raises CalledProcessError if Java or Spark fails, and OSError; jobs then start without it.
    """
    spark_submit = Path(sys.executable).with_name("spark-submit")

    with tempfile.TemporaryDirectory(dir=archive.parent, prefix="spark-classes-") as folder:
        made = Path(folder) / archive.name
        sites = {"SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS"}  # which may name another archive
        environ = {name: value for name, value in os.environ.items() if name not in sites}
        environ |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}

        def run(option: str, *arguments: str | Path) -> None:
            start = spark_start(environ, class_archive(made, option))
            # It is over before the optimising compiler pays.
            start["SPARK_SUBMIT_OPTS"] += " -XX:TieredStopAtLevel=1"
            subprocess.run(
                [spark_submit, *arguments], env=environ | start, cwd=folder,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True,
            )  # fmt: skip

        run("ArchiveClassesAtExit", "--master", "local[2]", _TRAINING)
        # A JVM crashes on an archive that is not whole, as after a full disk or a crash of the
        # machine: only one that was tried and is on the disk gets its name.
        run("SharedArchiveFile", "--version")
        with made.open("rb") as file:
            os.fsync(file.fileno())
        made.replace(archive)


if __name__ == "__main__":
    try:
        make_archive()
    except (OSError, subprocess.CalledProcessError) as error:
        message = getattr(error, "stderr", "") or str(error)
        sys.exit(message.strip().splitlines()[-1])
