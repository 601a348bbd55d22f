"""Free TCP ports of this machine."""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path


def is_free(port: int) -> bool:
    """Whether a server could listen on 127.0.0.1 at this port now."""
    with socket.socket() as listener:
        # As servers do: connections that are only waiting to be forgotten don't count.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    with socket.socket() as client:  # on macOS one can bind beside a listener on all interfaces
        return client.connect_ex(("127.0.0.1", port)) != 0


def free_port(preferred: int | None = None) -> int:
    """The preferred port if it is free, else another below those that outgoing connections get."""
    port = preferred or random.randint(20_000, 32_000)
    while not is_free(port):
        port = random.randint(20_000, 32_000)
    return port


@contextmanager
def reserving() -> Iterator[Callable[[int], int]]:
    """Yield `free_port`, with a promise: no other block, in whichever process, gets its ports.

    A server listens only seconds after its port was chosen; two installations that start together
    would choose the same one.
    """
    with ExitStack() as reserved:

        def reserve(preferred: int) -> int:
            port = free_port(preferred)
            while not _locked(port, reserved):
                port = free_port()
            return port

        yield reserve


def _locked(port: int, until: ExitStack) -> bool:
    """Lock the port's file until the stack is closed, unless another process holds the lock."""
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
