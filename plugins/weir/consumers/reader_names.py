"""Names of readers that say whose process they are, so that others on the machine see the end of
one (semantics 13.4)."""

import hashlib
import os
import re
import socket
import uuid
from pathlib import Path

_MARK = re.compile(r"([1-9][0-9]{0,9})-([0-9a-f]{6})[0-9a-f]{6}")


def reader_name() -> str:
    """Return a name for a reader that nobody else has."""
    return f"{socket.gethostname()}/{process_mark()}"


def process_mark() -> str:
    """Return what tells this process from all others, and no other call gets: its number, and a
    number of which the first half is that of the machine since its start."""
    return f"{os.getpid()}-{_machine()}{uuid.uuid4().hex[:6]}"


def has_ended(name: str) -> bool:
    """Return whether a reader has certainly ended: its name has the mark of a process of this
    machine, since its last start, that is gone. If that is not known, return False."""
    mark = next(filter(None, map(_MARK.fullmatch, re.split(r"[/ ]|(?<=\.[0-9]{6})-", name))), None)
    if mark is None or mark[2] != _machine():
        return False
    try:
        os.kill(int(mark[1]), 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # somebody else's, or none
        return False
    try:  # it is there; but perhaps nobody has asked yet how it ended
        status = Path(f"/proc/{mark[1]}/status").read_text()
        mine = os.readlink("/proc/self") == str(os.getpid())  # and not that of other namespaces
    except OSError:
        return False
    return mine and "\nState:\tZ" in status and "\nThreads:\t1\n" in status


def _machine() -> str:
    """Return what is the same for all processes that see each other's numbers, until the machine
    starts again. Outside of Linux, where that is not known, it is the same for nobody."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:6]
    except OSError:
        return uuid.uuid4().hex[:6]
