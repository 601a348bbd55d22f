"""What docs/recipes.md says about an Airflow that exists, and about mail."""

import json
import re
import socketserver
import threading
from collections.abc import Iterator
from email import message_from_string
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import BundleDagBag
from airflow.sdk.module_loading import import_string

from tests.conftest import TestDatabase
from weir.airflow.forms import POOL
from weir.database.connection import Database

PAGE = (Path(__file__).parents[2] / "docs/recipes.md").read_text()


def recipe(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]


class Mail(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs that sends one mail."""

    received: list[str]

    def handle(self) -> None:
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            if line.upper().startswith(b"DATA"):
                self.wfile.write(b"354 go on\r\n")
                lines = iter(self.rfile.readline, b".\r\n")
                self.received.append(b"".join(lines).decode())
            self.wfile.write(b"221 bye\r\n" if line.upper().startswith(b"QUIT") else b"250 ok\r\n")


@pytest.fixture
def mails(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The mails that arrive at the server of the connection smtp_default."""
    handler = type("Handler", (Mail,), {"received": []})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        extra = {"disable_ssl": True, "disable_tls": True, "from_email": "weir@example.org"}
        connection = {"conn_type": "smtp", "host": "127.0.0.1", "port": server.server_address[1],
                      "extra": extra}  # fmt: skip
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield handler.received  # type: ignore[attr-defined]
        server.shutdown()


def test_alerts_are_sent_by_mail_and_nothing_is_sent_without_one(
    mails: list[str],
    test_database: TestDatabase,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [code] = re.findall(r"```python\n(.*?)```", recipe("Alert by mail"), re.DOTALL)
    (tmp_path / "weir_alerts.py").write_text(code)
    bag = BundleDagBag(dag_folder=str(tmp_path), bundle_path=tmp_path, bundle_name="shown")
    assert bag.import_errors == {}
    alert = bag.dags["weir_alerts"].get_task("alert").python_callable
    monkeypatch.setenv("WEIR_DATABASE", test_database.dsn)
    alert()
    assert mails == []
    database.transaction(
        lambda c: c.exec_driver_sql(
            "INSERT INTO job_run (dag_id, run_id, task_id, map_index, try_number, job, arguments, "
            "state, error) VALUES ('d', 'r', 't', -1, 1, 'ingest', '{}', 'failed', "
            "'no <b>such</b> file')"
        )
    )
    alert()
    [mail] = mails
    message = message_from_string(mail)
    assert message["To"] == "data@example.org"
    [body] = [part for part in message.walk() if part.get_content_type() == "text/html"]
    assert body.get_payload(decode=True) == (
        b"The run r of d (ingest) failed: no &lt;b&gt;such&lt;/b&gt; file"
    )


def test_the_pool_and_the_bundle_are_the_ones_that_weir_uses() -> None:
    said = recipe("Install into an Airflow that exists")
    assert f"airflow pools set {POOL} " in said
    [bundles] = re.findall(r"```json\n(.*?)```", said, re.DOTALL)
    for bundle in json.loads(bundles):
        made = import_string(bundle["classpath"])(name=bundle["name"], **bundle["kwargs"])
        assert made.name == bundle["name"]
