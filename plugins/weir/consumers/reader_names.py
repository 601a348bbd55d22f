"""Names of readers that say whose process they are, so that others on the machine see the end of
one (semantics 13.4)."""

import hashlib
import os
import socket
import uuid
from pathlib import Path


def reader_name() -> str:
    """Return a name for a reader that nobody else has: `host/process/number`."""
    return f"{socket.gethostname()}/{os.getpid()}/{_machine()}{uuid.uuid4().hex[:8]}"


def has_ended(name: str) -> bool:
    """Return whether a reader of this name has certainly ended: its process was one of this
    machine, since its last start, and is gone. If that is not known, return False."""
    host, _, process = name.rpartition("/")[0].rpartition("/")
    if not process.isdecimal() or host != socket.gethostname():
        return False
    machine = _machine()
    if not machine or not name.rpartition("/")[2].startswith(machine):
        return False
    try:
        os.kill(int(process), 0)
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return True
    except OSError:  # somebody else's
        return False
    return state == "Z"  # nobody has asked yet how it ended


def _machine() -> str:
    """Return what is the same for all processes that see each other's numbers, until the machine
    starts again; empty where that is not known (outside of Linux)."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
        return hashlib.sha256(f"{boot} {os.readlink('/proc/self/ns/pid')}".encode()).hexdigest()[:6]
    except OSError:
        return ""
