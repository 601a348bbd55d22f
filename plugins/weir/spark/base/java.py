"""The Java that Spark starts, and classes in it."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache, reduce
from pathlib import Path
from typing import Protocol

from weir.errors import InvalidInput

LEAST_JAVA = 17
REMEDY = f"install Java {LEAST_JAVA} or later, or set JAVA_HOME (`make setup` does it)"


def find_java() -> str:
    """Return the version and the path of the Java that Spark can use. Raises InvalidInput if there
    is none."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise InvalidInput("dependency_missing", f"there is no java; {REMEDY}.")
    try:
        output = subprocess.run([program, "-version"], capture_output=True, text=True).stderr
    except OSError as error:
        raise InvalidInput(
            "dependency_missing", f"{program} can't be run ({error.strerror}); {REMEDY}."
        ) from None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', output)
    version = 0 if match is None else int(match[2] if match[1] == "1" and match[2] else match[1])
    if version < LEAST_JAVA:
        raise InvalidInput(
            "dependency_missing",
            f"{program} is Java {version or 'of an unknown version'}; {REMEDY}.",
        )
    return f"{version} ({program})"


class Java(Protocol):
    """What Python has of the JVM: a package, a class, an object or a method of one. What a method
    returns may be a value of Python: whoever wants one says which, as `int(...)`."""

    def __getattr__(self, name: str) -> "Java": ...

    def __call__(self, *given: object) -> "Java": ...

    def __int__(self) -> int: ...

    def __len__(self) -> int: ...

    def __iter__(self) -> "Iterator[Java]": ...

    def __hash__(self) -> int: ...


@cache
def java_class(jvm: Java, name: str) -> Java:
    """Return a class of the JVM by its full name. Each part of a name is a question to the JVM, so
    it is looked up once."""
    return reduce(getattr, name.split("."), jvm)
