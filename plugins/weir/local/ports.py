"""Find free TCP ports of this machine."""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def is_free(port: int) -> bool:
    """Return whether a server could listen at this port of 127.0.0.1 now."""
    with socket.socket() as listener:
        # Servers set this too, so closed connections in TIME_WAIT do not block the port.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    with socket.socket() as client:  # on macOS, bind succeeds beside a listener on all interfaces
        return client.connect_ex(("127.0.0.1", port)) != 0


def free_port(preferred: int | None = None) -> int:
    """Return the preferred port if it is free, else another one below the range of outgoing
    connections."""
    port = preferred or random.randint(20_000, 32_000)
    while not is_free(port):
        port = random.randint(20_000, 32_000)
    return port


@contextmanager
def reserving() -> Iterator[Callable[[int], int]]:
    """Yield `free_port` for a block. No other block, in any process, gets the ports of this one.

    A server begins to listen seconds after its port was chosen. Without the reservation, two
    installations that start together could choose the same port.
    """
    with ExitStack() as reserved:

        def reserve(preferred: int) -> int:
            port = free_port(preferred)
            while not _locked(port, reserved):
                port = free_port()
            return port

        yield reserve


def _locked(port: int, until: ExitStack) -> bool:
    """Lock the port's file until the stack is closed. Return False if another process holds the
    lock."""
    path = Path(tempfile.gettempdir()) / f"weir-port-{port}.lock"
    try:
        file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    except PermissionError:  # another user made it
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    until.callback(os.close, file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
