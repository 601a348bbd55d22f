"""What a real Airflow tells a server of OpenLineage about the tasks of Weir.

The provider is not among the requirements: where it is installed, the operator of Spark loads it,
which costs each task and each reading of a DAG more than a second.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from weir.local.installation import Installation
from weir.local.throw_away import reaped
from weir.programs.opening import shared
from weir.settings import load

pytestmark = [pytest.mark.release, pytest.mark.timeout(600)]
ORDERS = "customer,amount\nann,1.5\nbob,2.5\nann,3.0\n"
SHOP = """from pyspark.sql import functions as F

def totals(orders):
    return orders.groupBy("customer").agg(F.sum("amount").alias("amount"))
"""
PACKAGES = """apache-airflow-providers-openlineage==2.20.3 openlineage-integration-common==1.54.0
    openlineage-python==1.54.0 openlineage-sql==1.54.0 httpx2==2.16.2 httpcore2==2.16.2
    truststore==0.10.5""".split()  # without what Airflow has already
Event = dict[str, Any]


@pytest.fixture
def events() -> Iterator[tuple[str, list[Event]]]:
    """The address of a server, and the events that it gets."""
    received: list[Event] = []

    class Lineage(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append(json.loads(body))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Print nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Lineage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", received
        server.shutdown()


@pytest.fixture
def installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, events: tuple[str, list[Event]]
) -> Iterator[Installation]:
    """An installation whose Airflow has the provider, and sends events to that server."""
    (tmp_path / "shop.py").write_text(SHOP)
    uv = str(Path(sys.executable).with_name("uv"))
    target = str(tmp_path / "provider")
    install = [uv, "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*install, "--python", sys.executable, *PACKAGES], check=True)
    for name, value in {
        "WEIR_CONFIG": str(tmp_path / "weir.toml"),
        "WEIR_FUNCTION_PACKAGES": "shop",
        "WEIR_FUNCTION_PATH": str(tmp_path),
        "PYTHONPATH": os.pathsep.join([target, os.environ.get("PYTHONPATH", "")]),
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps({"type": "http", "url": events[0]}),
        "AIRFLOW__OPENLINEAGE__NAMESPACE": "here",
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "weir.toml").touch()
    installation = Installation(tmp_path / "state", durable=False)
    with reaped(installation.postgres, installation.state):
        try:
            installation.start()
            for name, value in installation.environment().items():
                monkeypatch.setenv(name, value)
            yield installation
        finally:
            installation.stop()
            installation.postgres.remove()


def completed(events: list[Event], task: str) -> Event:
    """The event that says that a task has ended well."""
    end = time.monotonic() + 60
    while True:
        for event in list(events):
            if event["eventType"] == "COMPLETE" and event["job"]["name"] == task:
                return event
        assert time.monotonic() < end, [(e["eventType"], e["job"]["name"]) for e in events]
        time.sleep(0.2)


def things(event: Event, side: str) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """The columns of each input or output by its namespace and name."""
    return {
        (one["namespace"], one["name"]): [
            (field["name"], field["type"])
            for field in one.get("facets", {}).get("schema", {}).get("fields", [])
        ]
        for one in event[side]
    }


def test_each_task_tells_what_it_read_and_wrote_with_the_columns_of_streams(
    installation: Installation, events: tuple[str, list[Event]]
) -> None:
    settings = load(dict(os.environ))
    Path(settings.input_roots[0], "orders.csv").write_text(ORDERS)
    api = installation.airflow.api()

    def run(job: str, **given: Any) -> Event:
        dag = f"weir_{job}"
        assert api.wait(dag, api.trigger(dag, given)) == "success"
        return completed(events[1], f"{dag}.{job}")

    orders = [("customer", "string"), ("amount", "double")]
    for stream in ("shop/orders", "shop/totals"):
        made = run("create_stream", stream=stream, routing_key="customer")
        assert (made["inputs"], made["outputs"]) == ([], [])
        events[1].clear()
    done = run("ingest", stream="shop/orders", files=["orders.csv"])
    assert done["job"]["namespace"] == "here"
    assert things(done, "inputs") == {("file", "orders.csv"): []}
    [(namespace, name)] = things(done, "outputs")
    assert namespace.startswith("weir://")
    assert name == "shop/orders"
    assert things(done, "outputs")[namespace, name] == orders

    shared().create_reader_group("totals", ["shop/orders"])
    outputs = ["stream:shop/totals", "parquet:totals"]
    done = run("process", reader_group="totals", function="shop:totals", outputs=outputs)
    assert things(done, "inputs") == {(namespace, "shop/orders"): orders}
    wrote = things(done, "outputs")
    assert wrote.pop((namespace, "shop/totals")) == orders
    [(kind, folder)] = wrote
    assert kind == "file"
    assert Path(folder).is_relative_to(settings.output_roots[0])
