"""How long, and in which process, connections may be used."""

import os
import threading
from collections.abc import Callable

from weir.errors import InvalidInput


class Lifetime:
    """The use of connections by the process that made them, until it ends. Threads share it."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._ended = threading.Event()

    @property
    def is_of_another_process(self) -> bool:
        """Whether this process is a fork of the one that made the connections."""
        return os.getpid() != self._process

    def end(self) -> None:
        """End the use for good."""
        self._ended.set()

    def check(self, described: Callable[[], str]) -> None:
        """Raise InvalidInput in a fork, and after the end. `described`: the database, for the
        sentence."""
        if self.is_of_another_process:
            raise InvalidInput(
                "not_open",
                f"the installation was opened by process {self._process}, and this is a fork of it "
                f"({os.getpid()}), which can't use its connections; open it here with weir.open().",
            )
        if self._ended.is_set():
            raise InvalidInput(
                "not_open",
                f"the installation with the database {described()} is closed, because its with "
                "block ended or it was told to close; open it anew with weir.open().",
            )
