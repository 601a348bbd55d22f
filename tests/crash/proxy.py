"""A network that fails when it hurts most: a TCP proxy to Postgres that cuts off at COMMIT."""

import contextlib
import itertools
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

COMMIT = rb"COMMIT\x00"


@dataclass
class Link:
    """The two ends of a connection, and whether it is lost, and the server has answered."""

    client: socket.socket
    server: socket.socket
    lost: threading.Event = field(default_factory=threading.Event)
    answered: threading.Event = field(default_factory=threading.Event)


class Proxy:
    """Listens on a port of its own. `fates` say what becomes of each message in which `at` is
    found, one after the other.

    "before": the connection goes before the server hears of it; "after": the server commits, but
    its answer is lost; anything else: all goes well.
    """

    def __init__(self, port: int, fates: Iterator[str], at: bytes) -> None:
        self._at = re.compile(at)
        self._target = ("127.0.0.1", port)
        self._fates = fates
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.cuts: list[str] = []
        self.seen = 0  # messages that `at` was found in
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(self._target)
            link = Link(client, server)
            for work in (self._to_server, self._to_client):
                threading.Thread(target=work, args=(link,), daemon=True).start()

    def _to_server(self, link: Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.client.recv(1 << 16):
                fate = ""
                if self._at.search(data):
                    self.seen += 1
                    fate = next(self._fates)
                if fate in ("before", "after"):
                    self.cuts.append(fate)
                    link.lost.set()
                    if fate == "after":
                        link.server.sendall(data)
                        link.answered.wait(10)  # until the server has committed
                    break
                link.server.sendall(data)
        _end(link.client)
        _end(link.server)

    def _to_client(self, link: Link) -> None:
        with contextlib.suppress(OSError):
            while data := link.server.recv(1 << 16):
                if link.lost.is_set():
                    break
                link.client.sendall(data)
        link.answered.set()
        if not link.lost.is_set():
            _end(link.client)


def _end(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@contextmanager
def failing_network(
    dsn: str, fates: list[str], at: bytes = COMMIT, *, once: bool = False
) -> Iterator[tuple[str, Proxy]]:
    """Yield a dsn that leads through a proxy, and the proxy. The fates of its COMMITs, or of the
    messages in which `at` is found, come round and round, or once, and then all goes well."""
    port = re.search(r"port=(\d+)", dsn)
    assert port is not None
    coming = itertools.chain(fates, itertools.repeat("fine")) if once else itertools.cycle(fates)
    proxy = Proxy(int(port[1]), coming, at)
    try:
        yield dsn.replace(port[0], f"port={proxy.port}"), proxy
    finally:
        proxy.close()
