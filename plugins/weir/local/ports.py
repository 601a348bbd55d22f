"""Free TCP ports of this machine."""

import random
import socket


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
