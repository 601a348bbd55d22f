"""`weir ui` serves the pages on this machine, to whoever has the address that it printed."""

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from tests.terminal.conftest import Done

REPOSITORY = Path(__file__).parents[2]


def test_the_pages_are_for_whoever_has_the_address(
    weir: Callable[..., Done], tmp_path: Path
) -> None:
    assert weir("create", "shop/orders", "--key", "customer").status == 0
    started = subprocess.Popen(
        [sys.executable, "-m", "weir.terminal", "ui", "--json"],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY / "plugins")},
    )  # fmt: skip
    try:
        assert started.stdout is not None
        address = json.loads(started.stdout.readline())["address"]
        page, _, token = address.partition("#token=")
        base = page.removesuffix("/now")
        assert base.startswith("http://127.0.0.1:")

        def get(path: str, *shown: str) -> tuple[int, str]:
            asked = urllib.request.Request(base + path)  # noqa: S310 - of this machine
            for one in shown:
                asked.add_header("Authorization", f"Bearer {one}")
            try:
                with urllib.request.urlopen(asked, timeout=300) as answer:  # noqa: S310
                    return answer.status, answer.read().decode()
            except urllib.error.HTTPError as error:
                return error.code, error.read().decode()

        assert get("/now")[0] == 200
        for path in ("/api/streams", "/api/groups", "/api/runs/d?run_id=r", "/api/openapi.json"):
            for shown in ((), ("",), ("no",), (token[:-1],)):
                assert get(path, *shown)[0] == 401, (path, shown)
        status, text = get("/api/streams", token)
        assert (status, json.loads(text)["total"]) == (200, 1)
    finally:
        started.send_signal(signal.SIGINT)
        assert started.wait(300) in (0, 130)
