"""The app of the pages on a port, for anybody: for tests, and for what is measured and drawn, so
that importing this sets nothing.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


def anybody() -> None:
    """Let everybody see it."""


@contextmanager
def serving(app: FastAPI) -> Iterator[str]:
    """Yield the address at which a thread serves an app."""
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    [socket] = server.servers[0].sockets
    yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    server.should_exit = True
    thread.join(30)
