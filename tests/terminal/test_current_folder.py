"""What lies in the current folder is not run by a command, unless it asks for that."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from weir.source_tree import beside

ROOT = beside("sql").parent
ENTRIES = ("setup.sh", "Makefile", "docker-compose.yaml", "plugins/weir/local/airflow_stack.py")


def test_every_entry_leaves_the_current_folder_out() -> None:
    for entry in ENTRIES:
        text = (ROOT / entry).read_text().replace('",\n            "', ", ").replace('"', "")
        starts = re.findall(r"(\S*\s)-m,? (?:weir|airflow|uvicorn)\b", text)
        assert starts, entry
        assert all(one.strip("', ") == "-P" for one in starts), entry


@pytest.mark.parametrize("name", ["argparse", "psycopg2", "tomllib", "weir", "json", "sqlalchemy"])
def test_a_module_of_the_current_folder_is_not_run(tmp_path: Path, name: str) -> None:
    (tmp_path / f"{name}.py").write_text("raise SystemExit('it ran')")
    [line] = re.findall(r'exec "\$here/python" (.*) "\$@"', (ROOT / "setup.sh").read_text())
    done = subprocess.run(
        [sys.executable, *line.split(), "--version"], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout[:5]) == (0, "weir "), done.stderr
