"""Airflow's forms in a browser, as people use them; and the steps of README.md as written."""

import re
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weir
from tests.acceptance.asking import until
from tests.acceptance.browser import Browser, browser
from tests.acceptance.conftest import settings_of
from weir.local.installation import Installation
from weir.operations.jobs import FORMS

REPOSITORY = Path(__file__).parents[2]
pytestmark = [pytest.mark.timeout(600), pytest.mark.release]
STEP = re.compile(r"\*\*(weir_\w+)\*\*\s+\(((?:[^()`]|`[^`]*`)*)\)")
FIELD = re.compile(r"\*([A-Z][^*]*)\*\s+`([^`]*)`")
CODE = re.compile(r"^ *```python[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)


def section() -> str:
    """What README.md says about one's own file, function and DAG."""
    text = (REPOSITORY / "README.md").read_text()
    return text.split("\n## Your own file, your own function, your own DAG\n")[1].split("\n## ")[0]


def steps() -> list[tuple[str, dict[str, str]]]:
    """Which DAGs it says to trigger, and what to type into which field."""
    return [(dag, dict(FIELD.findall(said))) for dag, said in STEP.findall(section())]


@pytest.fixture(scope="module")
def ui(installation: Installation) -> Iterator[Browser]:
    api = installation.airflow.api()
    # Their files are read some seconds after the start.
    until("all DAGs", lambda: api.get("/dags?limit=1")["total_entries"] >= len(FORMS))
    with browser(installation, "admin") as opened:
        yield opened


def test_a_form_suggests_the_names_that_there_are_and_takes_others(
    ui: Browser, installation: Installation
) -> None:
    with weir.open(settings=settings_of(installation)) as store:
        for number in range(2):  # each of them changes the forms, and no run has used these yet
            store.create_stream(f"suggest/stream-{number}", "n")
            wait_for_suggestion(ui, "weir_seal_stream", f"suggest/stream-{number}")
    versions = ui.api.get("/dags/weir_seal_stream/dagVersions")["total_entries"]
    assert versions == 1, "a version for each new stream"

    ui.see_dags()
    form = ui.form("weir_seal_stream")
    typed = form.field("Stream").locator("input")
    typed.wait_for()
    # The browser draws this list itself, narrowed to what is typed; without a screen it draws none.
    options = typed.evaluate("input => [...input.list.options].map(one => one.value)")
    assert {f"suggest/stream-{number}" for number in range(2)} <= set(options)
    form.close()

    ui.succeed("weir_seal_stream", {"Stream": "suggest/stream-1"})
    other, state = ui.run("weir_seal_stream", {"Stream": "suggest/nowhere"})
    assert state == "Failed", "a name that nobody suggests is taken, and then there is no stream"
    ui.expect_in_log("weir_seal_stream", other, "seal_stream", "suggest/nowhere")
    with weir.open(settings=settings_of(installation)) as store:
        store.create_stream("suggest/last", "n")
    wait_for_suggestion(ui, "weir_seal_stream", "suggest/last")
    versions = ui.api.get("/dags/weir_seal_stream/dagVersions")["total_entries"]
    assert versions == 2, "a version more once there were runs"


def wait_for_suggestion(ui: Browser, dag: str, name: str) -> None:
    """Wait until Airflow has parsed the DAGs again."""

    def suggested() -> bool:
        params = ui.api.get(f"/dags/{dag}/details")["params"]
        return name in params["stream"]["schema"].get("examples", [])

    until("the suggestion", suggested)


def test_the_steps_of_the_readme_work_as_they_are_written(
    ui: Browser, installation: Installation, seconds_to_start: list[float]
) -> None:
    made = steps()
    assert len(made) + len(["git clone", "cd", "make up"]) <= 10
    assert [dag for dag, _ in made] == [
        "weir_create_stream", "weir_ingest", "weir_create_reader_group", "weir_process",
    ]  # fmt: skip
    settings = settings_of(installation)
    files, output = Path(settings.input_roots[0]), Path(settings.output_roots[0])
    files.mkdir(parents=True, exist_ok=True)
    (files / "orders.csv").write_text("customer,amount\nann,1\nbob,2\nann,3\n")
    function, dag = map(textwrap.dedent, CODE.findall(section()))
    shop = installation.state.parent / "functions" / "shop"
    shop.mkdir(parents=True)
    (shop / "__init__.py").write_text(function)

    begun, in_runs = time.monotonic(), ui.in_runs
    for step in made:
        ui.succeed(*step)
    counted = {row["customer"]: row["orders"]
               for row in pq.read_table(output / "totals").to_pylist()}  # fmt: skip
    assert counted == {"ann": 2, "bob": 1}
    hour = seconds_to_start[0] + time.monotonic() - begun
    print(f"from the start of Airflow to the result: {hour:.0f} s")
    assert hour < 180

    # The same file again, and then as somebody types it who has read other manuals.
    again = ui.succeed(*made[1])
    ui.expect_in_log("weir_ingest", again, "ingest", '"repeated": true')
    wrong, state = ui.run("weir_ingest", {"Stream": "shop/orders", "Files": '["orders.csv"]'})
    assert state == "Failed"
    ui.expect_in_log("weir_ingest", wrong, "ingest", "write orders.csv as an entry of its own")

    # Whoever wants to delete it all is first told what that would be.
    everything = {"Stream": "shop/orders", "Truncate before": "tail"}
    asked = ui.succeed("weir_truncate_stream", everything)
    ui.expect_in_log(
        "weir_truncate_stream", asked, "truncate_stream",
        "would truncate 3 events of stream shop/orders", "nothing was truncated",
    )  # fmt: skip

    spent = time.monotonic() - begun - (ui.in_runs - in_runs)
    print(f"beside the runs themselves, seven forms took {spent:.0f} s")
    # 36 s on a quiet machine, 77 s beside another test run: the limit is for what hangs.
    assert spent < 180, f"beside the runs themselves, seven forms took {spent:.0f} s"

    (installation.state.parent / "dags/shop_totals.py").write_text(dag)
    until("the DAG", lambda: ui.api.get("/dags?dag_id_pattern=shop_totals")["dags"])
    more = {"customer": ["cy"], "amount": pa.array([4], pa.int32())}
    pq.write_table(pa.table(more), files / "more.csv.parquet")
    ui.succeed("weir_ingest", {"Stream": "shop/orders", "Files": "more.csv.parquet\n"})
    runs = until("its run", lambda: ui.api.get("/dags/shop_totals/dagRuns")["dag_runs"])
    assert ui.api.wait("shop_totals", runs[0]["dag_run_id"]) == "success"
    counted |= {row["customer"]: row["orders"]
                for row in pq.read_table(output / "totals").to_pylist()}  # fmt: skip
    assert counted == {"ann": 2, "bob": 1, "cy": 1}


MENDING = """from pyspark.sql import functions as F

def picky(orders, limit):
    failure = F.raise_error(F.lit("too much")).cast("long")
    amount = F.when(F.col("amount") > limit, failure).otherwise(F.col("amount"))
    return orders.withColumn("amount", amount)
"""
DECLARED = """streams:
  mend/orders: {routing_key: customer}
reader_groups:
  mend: {streams: [mend/orders]}
consumers:
  mend:
    function: mending:picky
    outputs: ["parquet:mend partition_by=customer"]
    on_error: quarantine
    parameters: {limit: 2}
"""


def test_a_consumer_is_declared_run_with_other_sizes_and_what_it_rejected_put_back_by_forms(
    ui: Browser, installation: Installation
) -> None:
    settings = settings_of(installation)
    files, output = Path(settings.input_roots[0]), Path(settings.output_roots[0])
    files.mkdir(parents=True, exist_ok=True)
    (files / "mend.csv").write_text("customer,amount\nann,1\nbob,5\nann,2\n")
    functions = installation.state.parent / "functions"
    functions.mkdir(exist_ok=True)
    (functions / "mending.py").write_text(MENDING)

    asked = ui.succeed("weir_apply", {}, {"More": {"Declarations": DECLARED}})
    ui.expect_in_log("weir_apply", asked, "apply", "3 of 3 declared things differ")
    really = {"Dry run": "no"}  # it is on at first
    ui.succeed("weir_apply", really, {"More": {"Declarations": DECLARED}})
    again = ui.succeed("weir_apply", really, {"More": {"Declarations": DECLARED}})
    ui.expect_in_log("weir_apply", again, "apply", "0 of 3 declared things changed")

    ui.succeed("weir_ingest", {"Stream": "mend/orders", "Files": "mend.csv"})
    small = {"Readers, order and errors": {"Retries of a batch": "1"},
             "Size of a batch": {"Bytes in a batch": "1 MB", "Files in a batch": "3"}}  # fmt: skip
    done = ui.succeed("weir_process", {"Reader group": "mend"}, small)
    ui.expect_in_log("weir_process", done, "process/mapped/0", "batch 5 of mend committed")
    found = pq.read_table(output / "mend", partitioning="hive")
    assert sorted(found["amount"].to_pylist()) == [1, 2]

    ui.succeed("weir_put_back", {"Reader group": "mend", "Parameters": '{"limit": 9}'})
    found = pq.read_table(output / "mend", partitioning="hive")
    rows = sorted((row["customer"], row["amount"]) for row in found.to_pylist())
    assert rows == [("ann", 1), ("ann", 2), ("bob", 5)]
