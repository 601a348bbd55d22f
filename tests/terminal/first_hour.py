"""The first hour of somebody in a terminal: a section of README.md as a script."""

import os
import re
import subprocess
import sys
from pathlib import Path

from weir.source_tree import LIBRARY, beside

INSTALLING = "make setup && . .venv/bin/activate"
SHOP = """from pyspark.sql import functions as F


def totals(orders):
    return orders.groupBy("customer").agg(F.count("*").alias("orders"))
"""


def commands() -> list[str]:
    """Return what the section says to type."""
    text = beside("README.md").read_text().split("\n## In a terminal\n")[1].split("\n## ")[0]
    [block] = re.findall(r"^```sh[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(block).splitlines()


def prepare(folder: Path, orders: int = 1000) -> None:
    """Put into a folder what a person brings: a file and a function."""
    folder.mkdir()
    (folder / "weir.toml").touch()
    lines = (f"{n},customer {n % 40},{n % 100}.5" for n in range(orders))
    (folder / "orders.csv").write_text("order_id,customer,amount\n" + "\n".join(lines) + "\n")
    (folder / "mine.py").write_text(SHOP)


def type_all(folder: Path) -> dict[str, str]:
    """Type everything but the installation; return what each command printed."""
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("WEIR_", "PG"))}
    environ["PYTHONPATH"] = str(LIBRARY.parent)
    said = {}
    for line in commands():
        if line != INSTALLING:
            words = line.split()
            assert words[0] == "weir"
            done = subprocess.run(
                [sys.executable, "-m", "weir.terminal", *words[1:]],
                cwd=folder, env=environ, capture_output=True, text=True, timeout=300,
            )  # fmt: skip
            assert done.returncode == 0, f"{line}: {done.stderr}"
            said[words[1]] = done.stdout
    return said
