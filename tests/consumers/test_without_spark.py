"""Commands without pyspark: a function of pandas, or a sentence that says so; a new store."""

import os
import subprocess
import sys
from pathlib import Path

import weir

PLUGINS = Path(__file__).parents[2] / "plugins"
_WITHOUT = """
import sys
class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("pyspark", "py4j", "airflow", "psutil"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker())
from weir.terminal.__main__ import main
sys.exit(main(sys.argv[1:]))
"""
_FUNCTION = """
def twice(events):
    rows = events.to_pandas()
    rows["n"] *= 2
    return rows[["k", "n"]]
"""


def test_a_group_is_processed_by_a_function_of_pandas(
    store: weir.StreamStore, tmp_path: Path
) -> None:
    store.append("s/in", [{"k": "a", "n": 1}, {"k": "b", "n": 2}])
    (tmp_path / "shop.py").write_text(_FUNCTION)
    (tmp_path / "weir.toml").write_text(
        f'database = "{store.settings.database}"\nwarehouse = "{store.settings.warehouse}"\n'
    )

    def run(*words: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", _WITHOUT, *words], cwd=tmp_path, capture_output=True, text=True,
            env={"PYTHONPATH": str(PLUGINS), "PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        )  # fmt: skip
        return done.returncode, done.stderr

    process = ("process", "g", "shop:twice", "--output", "stream:s/out")
    status, said = run(*process, "--engine", "spark")
    assert (status, "pip install 'weir-streams[spark]'" in said) == (2, True), said
    assert run(*process)[0] == 0, "auto is pyarrow where there is no pyspark"
    assert sorted(store.read("s/out", columns=["n"])["n"].to_pylist()) == [2, 4]

    define = (
        "define-adjunct-store",
        "s/names",
        "--stream",
        "s/in",
        "--value",
        "n, upper(k) AS name",
    )
    assert "'m'" in run(*define, "--key", "int(m)")[1], "the columns of the stream are known"
    status, said = run(*define, "--key", "lower(k)")
    assert status == 0, said
